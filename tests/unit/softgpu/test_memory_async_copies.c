/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp.async of all sizes, of all bytes and of some. It is between places that lie in all the shapes
 * that the software GPU treats in their own ways. Each copy is made several times: the first time
 * the instruction does not know the memory yet. And matrices that begin in memory and end beyond
 * it, whose loads look at their first and last line alone.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define LANES 32
#define BOX 2048 /* bytes of shared memory */
#define PARAMS ".param .u64 source, .param .u64 result, .param .u64 plan"

/* What each lane copies: from where, to where, and how many bytes. */
struct plan {
    uint64_t from[LANES];
    uint32_t to[LANES];
    uint32_t count[LANES];
};

/* Lane by lane, in units of the size. */
static uint32_t row(uint32_t lane)
{
    return lane;
}

static uint32_t rows_of_eight(uint32_t lane)
{
    return lane % 8 + 10 * (lane / 8);
}

static uint32_t rows_of_sixteen(uint32_t lane)
{
    return lane % 16 + 40 * (lane / 16);
}

static uint32_t backward(uint32_t lane)
{
    return LANES - 1 - lane;
}

static uint32_t one_for_eight(uint32_t lane)
{
    return lane / 8;
}

static uint32_t one_for_all(uint32_t lane)
{
    return 5;
}

typedef uint32_t (*shape_fn)(uint32_t lane);

static uint32_t count_of(unsigned kind, unsigned size, uint32_t lane)
{
    const uint32_t counts[] = {size, lane % 3 ? size : 0, lane % (size + 1), 0, size + lane};
    return counts[kind];
}
#define COUNTS 5

static void make_plan(struct plan *plan, uint64_t source, unsigned size, shape_fn from, shape_fn to,
                      unsigned counts)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        plan->from[lane] = source + from(lane) * size;
        plan->to[lane] = to(lane) * size;
        plan->count[lane] = count_of(counts, size, lane);
        /* Nothing is read there. */
        if (plan->count[lane] == 0)
            plan->from[lane] = 0x10;
    }
}

static void expect_copied(const struct plan *plan, unsigned size, const unsigned char *result)
{
    unsigned char expected[BOX];
    memset(expected, 0xcc, sizeof(expected));
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t valid = plan->count[lane] < size ? plan->count[lane] : size;
        memset(expected + plan->to[lane], 0, size);
        if (valid)
            memcpy(expected + plan->to[lane], (const void *)(uintptr_t)plan->from[lane], valid);
    }
    for (unsigned at = 0; at < BOX; at++) {
        if (result[at] != expected[at])
            fail_msg("size %u, byte %u: %02x, not %02x", size, at, result[at], expected[at]);
    }
}

static struct machine *copier(unsigned size)
{
    char text[4096];
    snprintf(
        text, sizeof(text),
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".shared .align 16 .b8 box[%d];\n"
        ".visible .entry k(" PARAMS ")\n{\n"
        ".reg .pred %%p;\n.reg .b32 %%r<9>;\n.reg .b64 %%rd<9>;\n"
        "ld.param.u64 %%rd1, [result];\nld.param.u64 %%rd2, [plan];\nmov.u32 %%r1, %%tid.x;\n"
        "mul.wide.u32 %%rd3, %%r1, 8;\nadd.u64 %%rd3, %%rd3, %%rd2;\n"
        "ld.global.u64 %%rd4, [%%rd3];\nmul.wide.u32 %%rd3, %%r1, 4;\n"
        "add.u64 %%rd3, %%rd3, %%rd2;\nld.global.u32 %%r2, [%%rd3+256];\n"
        "ld.global.u32 %%r3, [%%rd3+384];\nmov.u32 %%r4, box;\nadd.u32 %%r2, %%r2, %%r4;\n"
        "mad.lo.u32 %%r5, %%r1, 4, %%r4;\nmov.u32 %%r6, 0;\nmov.u32 %%r7, 0xcccccccc;\n"
        "fill:\nst.shared.u32 [%%r5], %%r7;\nadd.u32 %%r5, %%r5, 128;\nadd.u32 %%r6, %%r6, 128;\n"
        "setp.lt.u32 %%p, %%r6, %d;\n@%%p bra fill;\nbar.sync 0;\nmov.u32 %%r6, 0;\n"
        "again:\ncp.async.c%c.shared.global [%%r2], [%%rd4], %u, %%r3;\n"
        "cp.async.wait_all;\nadd.u32 %%r6, %%r6, 1;\nsetp.lt.u32 %%p, %%r6, 3;\n"
        "@%%p bra again;\nbar.sync 0;\nmad.lo.u32 %%r5, %%r1, 4, %%r4;\n"
        "mul.wide.u32 %%rd3, %%r1, 4;\nadd.u64 %%rd3, %%rd3, %%rd1;\nmov.u32 %%r6, 0;\n"
        "out:\nld.shared.u32 %%r7, [%%r5];\nst.global.u32 [%%rd3], %%r7;\n"
        "add.u32 %%r5, %%r5, 128;\nadd.u64 %%rd3, %%rd3, 128;\nadd.u32 %%r6, %%r6, 128;\n"
        "setp.lt.u32 %%p, %%r6, %d;\n@%%p bra out;\nret;\n}\n",
        BOX, BOX, size == 16 ? 'g' : 'a', size, BOX);
    return machine_create_from(text);
}

static void check_size(unsigned size)
{
    const shape_fn from[] = {row,      rows_of_eight, rows_of_sixteen,
                             backward, one_for_eight, one_for_all};
    struct machine *machine = copier(size);
    unsigned char *source = machine_memory(machine, BOX), *result = machine_memory(machine, BOX);
    struct plan *plan = machine_memory(machine, sizeof(*plan));
    void *params[] = {&source, &result, &plan};
    for (unsigned at = 0; at < BOX; at++)
        source[at] = (unsigned char)(at * 7 + at / 256 + 1);
    /* Destinations never meet: those are the first four shapes. */
    for (unsigned i = 0; i < 6 * 4 * COUNTS; i++) {
        make_plan(plan, (uintptr_t)source, size, from[i % 6], from[i / 6 % 4], i / 24);
        assert_int_equal(machine_launch(machine, "k", 1, LANES, 0, params), CUDA_SUCCESS);
        expect_copied(plan, size, result);
    }
    machine_destroy(machine);
}

static void test_shapes(void **state)
{
    check_size(4);
    check_size(8);
    check_size(16);
}

/* A lane that reads beyond the memory is found, whether or not others copy nothing. */
static void test_bounds(void **state)
{
    for (unsigned bad = 0; bad < LANES; bad += 15) {
        struct machine *machine = copier(8);
        unsigned char *source = machine_memory(machine, BOX),
                      *result = machine_memory(machine, BOX);
        struct plan *plan = machine_memory(machine, sizeof(*plan));
        void *params[] = {&source, &result, &plan};
        make_plan(plan, (uintptr_t)source, 8, row, row, bad ? 0 : 1);
        plan->from[bad] = 0x10;
        plan->count[bad] = 1;
        assert_int_equal(machine_launch(machine, "k", 1, LANES, 0, params),
                         CUDA_ERROR_ILLEGAL_ADDRESS);
        machine_destroy(machine);
    }
}

/* Loads a matrix of 16 rows, each of 32 bytes, so many bytes apart; first one that is in bounds. */
static CUresult load_matrix(const char *space, uint32_t offset, uint32_t stride)
{
    char text[2048];
    bool shared = strstr(space, "shared");
    snprintf(
        text, sizeof(text),
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".shared .align 16 .b8 box[%d];\n"
        ".visible .entry k(.param .u64 memory, .param .u32 offset, .param .u32 stride)\n{\n"
        ".reg .b32 %%r<20>;\n.reg .b64 %%rd<4>;\n.reg .pred %%p;\nld.param.u64 %%rd1, [memory];\n%s"
        "mov.u64 %%rd2, 0;\nmov.u32 %%r17, 16;\nmov.u32 %%r18, 0;\nld.param.u32 %%r19, [offset];\n"
        "again:\nadd.u64 %%rd3, %%rd1, %%rd2;\n"
        "wmma.load.a.sync.aligned.row.m16n16k16%s.f16 {%%r0, %%r1, %%r2, %%r3, %%r4, %%r5, %%r6, "
        "%%r7}, [%%rd3], %%r17;\n"
        "ld.param.u32 %%r17, [stride];\ncvt.u64.u32 %%rd2, %%r19;\nadd.u32 %%r18, %%r18, 1;\n"
        "setp.lt.u32 %%p, %%r18, 2;\n@%%p bra again;\nret;\n}\n",
        BOX,
        shared          ? "mov.u64 %rd1, box;\n"
        : strlen(space) ? ""
                        : "mov.u64 %rd1, box;\ncvta.shared.u64 %rd1, %rd1;\n",
        space);
    struct machine *machine = machine_create_from(text);
    void *memory = machine_memory(machine, BOX);
    void *params[] = {&memory, &offset, &stride};
    CUresult result = machine_launch(machine, "k", 1, LANES, 0, params);
    machine_destroy(machine);
    return result;
}

static void test_matrices(void **state)
{
    const char *spaces[] = {".shared", ".global", ""};
    for (unsigned i = 0; i < 3; i++) {
        uint32_t last = BOX - 15 * 64 - 32;
        assert_int_equal(load_matrix(spaces[i], last, 32), CUDA_SUCCESS);
        assert_int_equal(load_matrix(spaces[i], last + 32, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_int_equal(load_matrix(spaces[i], 0, 1u << 31), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_int_equal(load_matrix(spaces[i], 2, 32), CUDA_ERROR_MISALIGNED_ADDRESS);
        assert_int_equal(load_matrix(spaces[i], 0, 17), CUDA_ERROR_MISALIGNED_ADDRESS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
