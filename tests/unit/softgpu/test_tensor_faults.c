/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by tensor maps that cannot be: each ends in a fault of the kernel, with a message. What
 * copies do is compared with a GPU's in tests/api/driver/tensor_copies.c.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#include "tensor_map.h"

#define KERNEL                                                                                  \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                          \
    ".visible .entry k(.param .u64 map, .param .u32 x)\n{\n"                                    \
    ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b16 %h<4>;\n"                                     \
    ".shared .align 128 .b8 box[4096];\n.shared .align 8 .b64 bar;\n"                           \
    "ld.param.u64 %rd1, [map];\nld.param.u32 %r1, [x];\nmov.u32 %r2, box;\nmov.u32 %r3, bar;\n" \
    "mbarrier.init.shared.b64 [%r3], 1;\nmov.u16 %h1, 2;\n"
#define LOAD(to, more)                                                                      \
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" more \
    " [" to "], [%rd1, {%r1, 0}], [%r3]"
#define END ";\nret;\n}\n"

/* A matrix of 64 by 64 floats. */
static struct cuda_tensor_map matrix(void *memory)
{
    return (struct cuda_tensor_map){
        .kind = TENSOR_MAP_TILED,
        .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        .rank = 2,
        .address = (uintptr_t)memory,
        .dims = {64, 64},
        .strides = {256},
        .box = {32, 32},
        .element_strides = {1, 1},
    };
}

/* Runs the statements with this map, of which `break_it` has changed something. */
static void expect_fault(const char *text, void (*break_it)(struct cuda_tensor_map *map),
                         CUresult result, const char *message)
{
    struct machine *machine = machine_create_from(text);
    struct cuda_tensor_map map = matrix(machine_memory(machine, 64 * 256));
    void *bytes = machine_memory(machine, TENSOR_MAP_BYTES);
    uint32_t x = 0;
    void *params[] = {&bytes, &x};

    if (break_it)
        break_it(&map);
    tensor_map_pack(&map, bytes);
    assert_int_equal(machine_launch(machine, "k", 1, 1, 0, params), result);
    if (message && !strstr(machine->message, message))
        fail_msg("\"%s\" does not say \"%s\"", machine->message, message);
    machine_destroy(machine);
}

static void no_map(struct cuda_tensor_map *map)
{
    map->rank = 9;
}

static void invalid_map(struct cuda_tensor_map *map)
{
    map->strides[0] = 250;
}

static void of_rank_1(struct cuda_tensor_map *map)
{
    map->rank = 1;
}

static void beyond_memory(struct cuda_tensor_map *map)
{
    map->strides[0] = 1u << 20;
}

static void huge_box(struct cuda_tensor_map *map)
{
    map->rank = 5;
    for (unsigned i = 0; i < 5; i++) {
        map->box[i] = 256;
        map->element_strides[i] = 1;
        map->dims[i] = 256;
    }
}

static void short_rows(struct cuda_tensor_map *map)
{
    map->box[0] = 16;
    map->swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
}

static void interleaved(struct cuda_tensor_map *map)
{
    map->rank = 3;
    map->dims[2] = map->box[2] = map->element_strides[2] = 1;
    map->strides[1] = 1u << 14;
    map->interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
}

static void rounded(struct cuda_tensor_map *map)
{
    map->type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
}

static void test_fine(void **state)
{
    expect_fault(KERNEL LOAD("%r2", "") END, NULL, CUDA_SUCCESS, NULL);
}

static void test_maps(void **state)
{
    expect_fault(KERNEL LOAD("%r2", "") END, no_map, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                 "no valid tensor map");
    expect_fault(KERNEL LOAD("%r2", "") END, invalid_map, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                 "no valid tensor map");
    expect_fault(KERNEL LOAD("%r2", "") END, of_rank_1, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                 "another rank or mode");
    expect_fault(KERNEL LOAD("%r2", "") END, short_rows, CUDA_ERROR_NOT_SUPPORTED, "shorter");
    expect_fault(KERNEL LOAD("%r2", "") END, rounded, CUDA_ERROR_NOT_SUPPORTED, "TFLOAT32");
    expect_fault(KERNEL LOAD("%r2", "") END, interleaved, CUDA_ERROR_NOT_SUPPORTED, "interleaved");
}

static void test_memory(void **state)
{
    expect_fault(KERNEL LOAD("%r2", "") END, beyond_memory, CUDA_ERROR_ILLEGAL_ADDRESS,
                 "illegal read of 128 bytes");
    expect_fault(KERNEL LOAD("%r2+16", "") END, NULL, CUDA_ERROR_MISALIGNED_ADDRESS, "128 bytes");
    expect_fault(KERNEL LOAD("%r2+128", "") END, NULL, CUDA_ERROR_ILLEGAL_ADDRESS, "4096 bytes");
    expect_fault(KERNEL
                 "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%r2], [%rd1, {0, 0, 0, 0, 0}], [%r3]" END,
                 huge_box, CUDA_ERROR_ILLEGAL_ADDRESS, "larger than shared memory");
    expect_fault(KERNEL LOAD("%r2", ".multicast::cluster") ", %h1" END, NULL,
                 CUDA_ERROR_ILLEGAL_ADDRESS, "a cluster that has fewer");
    expect_fault(KERNEL "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group"
                        " [%rd1, {%r1, 0}], [%r2]" END,
                 NULL, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a reduction");
}

static void to_pixels(struct cuda_tensor_map *map)
{
    map->kind = TENSOR_MAP_IM2COL;
    map->rank = 3;
    map->dims[1] = 8;
    map->dims[2] = 4;
    map->strides[1] = 2048;
    map->element_strides[2] = 1;
    map->box[0] = map->box[1] = 0;
    map->channels = 32;
    map->pixels = 4;
}

#define STORE                                                    \
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group" \
    " [%rd1, {%r1, 0}], [%r2]"

/* Where boxes may begin; an H200 says so, the ISA does not. */
static void test_begins(void **state)
{
#define PIXELS                                                                           \
    "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" \
    " [%r2], [%rd1, {0, %r1, 0}], [%r3], {%h2}"
    expect_fault(KERNEL "mov.u32 %r1, 4;" LOAD("%r2", "") END, NULL, CUDA_SUCCESS, NULL);
    expect_fault(KERNEL "mov.u32 %r1, -8;" LOAD("%r2", "") END, NULL, CUDA_SUCCESS, NULL);
    expect_fault(KERNEL "mov.u32 %r1, 3;" LOAD("%r2", "") END, NULL, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                 "a multiple of 16 bytes");
    expect_fault(KERNEL "mov.u32 %r1, -10;" LOAD("%r2", "") END, NULL,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION, "a multiple of 16 bytes");
    expect_fault(KERNEL "mov.u16 %h2, 0; mov.u32 %r1, 0;" PIXELS END, to_pixels, CUDA_SUCCESS,
                 NULL);
    expect_fault(KERNEL "mov.u16 %h2, 0; mov.u32 %r1, -1;" PIXELS END, to_pixels,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION, "between the corners");
    expect_fault(KERNEL "mov.u16 %h2, 0; mov.u32 %r1, 8;" PIXELS END, to_pixels,
                 CUDA_ERROR_ILLEGAL_INSTRUCTION, "between the corners");
    expect_fault(KERNEL "mov.u32 %r1, -4;" STORE END, NULL, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                 "in front of the innermost dimension");
    expect_fault(KERNEL "mov.u32 %r1, 4;" STORE END, NULL, CUDA_SUCCESS, NULL);
}

static void test_replacements(void **state)
{
    static const char *const values[] = {
        "rank.global.b1024.b32 [%rd1], 5",          "box_dim.global.b1024.b32 [%rd1], 0, 257",
        "global_dim.global.b1024.b32 [%rd1], 1, 0", "element_stride.global.b1024.b32 [%rd1], 1, 9",
        "elemtype.global.b1024.b32 [%rd1], 13",     "swizzle_mode.global.b1024.b32 [%rd1], 4"};
    char text[2048];

    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(text, sizeof(text), "%stensormap.replace.tile.%s%s", KERNEL, values[i], END);
        expect_fault(text, NULL, CUDA_ERROR_ILLEGAL_INSTRUCTION, "no value of this field");
    }
}

/* A text that is refused when it is loaded. */
static void refused(const char *statement, CUresult result)
{
    char text[2048], log[512];
    CUresult found = CUDA_SUCCESS;

    snprintf(text, sizeof(text), "%s%s%s", KERNEL, statement, END);
    assert_null(sg_module_load(text, strlen(text), 90, log, sizeof(log), &found));
    assert_int_equal(found, result);
}

static void test_statements(void **state)
{
    refused("cp.async.bulk.tensor.2d.shared::cluster.global.bulk_group [%r2], [%rd1, {0, 0}]",
            CUDA_ERROR_NOT_SUPPORTED);
    refused("cp.async.bulk.tensor.2d.global.shared::cta.im2col_no_offs.bulk_group "
            "[%rd1, {0, 0}], [%r2]",
            CUDA_ERROR_NOT_SUPPORTED);
    refused(LOAD("%r2", ".cta_group::1"), CUDA_ERROR_NOT_SUPPORTED);
    refused("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%r2], [%rd1, {0, 0, 0}], [%r3]",
            CUDA_ERROR_INVALID_PTX);
    refused("tensormap.replace.tile.global_stride.global.b1024.b64 [%rd1], 4, 16",
            CUDA_ERROR_INVALID_PTX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fine),         cmocka_unit_test(test_maps),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_begins),
        cmocka_unit_test(test_replacements), cmocka_unit_test(test_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
