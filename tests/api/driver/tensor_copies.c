/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by tensor maps (cp.async.bulk.tensor): every box is compared, byte by byte, with what the
 * PTX ISA says of it. The kernels are written here, for one statement after the other.
 *
 * tensor_copies [TEST [FIRST]] runs one of the tests, from a copy on. A copy that faults ends the
 * program. The program says which one it was, so that another run can find the next.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSOR_BYTES (256u << 10)
#define BOX_BYTES (64u << 10)

static CUdeviceptr tensor, box_in, box_out, map_room;
static unsigned char *host; /* what the tensor holds at first */
static unsigned copies, first_copy;

struct map {
    CUtensorMapDataType type;
    unsigned element, rank;
    bool is_im2col;
    cuuint64_t dims[5], strides[4];
    cuuint32_t box[5], steps[5];
    int lower[3], upper[3];
    cuuint32_t channels, pixels;
    CUtensorMapSwizzle swizzle;
    CUtensorMapFloatOOBfill fill;
};

struct place {
    int start[5];
    int offsets[3];
};

/* ---- What is expected ---- */

static unsigned row_elements(const struct map *map)
{
    return map->is_im2col ? map->channels : map->box[0];
}

static unsigned along(const struct map *map, unsigned i)
{
    return (map->box[i] + map->steps[i] - 1) / map->steps[i];
}

static unsigned rows(const struct map *map)
{
    unsigned count = 1;

    if (map->is_im2col)
        return map->pixels;
    for (unsigned i = 1; i < map->rank; i++)
        count *= along(map, i);
    return count;
}

static unsigned box_bytes(const struct map *map)
{
    return rows(map) * row_elements(map) * map->element;
}

/* The coordinates of a row of a tiled box. */
static void tiled_row(const struct map *map, const struct place *place, unsigned row, int at[5])
{
    for (unsigned i = 1; i < map->rank; i++) {
        at[i] = place->start[i] + (int)(row % along(map, i) * map->steps[i]);
        row /= along(map, i);
    }
}

/* Positions of the filter in steps, from the place's on; each W from the lower to the upper corner.
 */
static void im2col_row(const struct map *map, const struct place *place, unsigned row, int at[5])
{
    unsigned images = map->rank - 1;

    memcpy(at, place->start, sizeof(place->start));
    while (row-- > 0) {
        unsigned i = 1;

        for (; i < images; i++) {
            at[i] += (int)map->steps[i];
            if (at[i] <= (int)map->dims[i] - 1 + map->upper[i - 1])
                break;
            at[i] = map->lower[i - 1];
        }
        at[images] += i == images;
    }
    for (unsigned i = 1; i < images; i++)
        at[i] += place->offsets[i - 1];
}

/* Where the element is in the tensor, or -1. */
static long offset_in_tensor(const struct map *map, const struct place *place, unsigned row,
                             unsigned column)
{
    int at[5] = {0};
    long offset = 0;

    if (map->is_im2col)
        im2col_row(map, place, row, at);
    else
        tiled_row(map, place, row, at);
    at[0] = place->start[0] + (int)column;
    for (unsigned i = 0; i < map->rank; i++) {
        if (at[i] < 0 || at[i] >= (int)map->dims[i])
            return -1;
        offset += at[i] * (long)(i ? map->strides[i - 1] : map->element);
    }
    return offset;
}

/* Where the element is in shared memory, from a box that begins at a multiple of 1024. */
static unsigned offset_in_box(const struct map *map, unsigned row, unsigned column)
{
    unsigned offset = (row * row_elements(map) + column) * map->element;
    unsigned chunk = offset >> 4 & 7, line = offset >> 7 & 7;

    switch (map->swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
        chunk ^= line & 1;
        break;
    case CU_TENSOR_MAP_SWIZZLE_64B:
        chunk ^= line & 3;
        break;
    case CU_TENSOR_MAP_SWIZZLE_128B:
        chunk ^= line;
        break;
    default:
        break;
    }
    return (offset & ~0x70u) | chunk << 4;
}

/* ---- Kernels ---- */

/*
 * Fills the box from `in` if there is one. The first thread of each block makes the statement and
 * waits until `expected` bytes have come. Then it writes the box to `out` if there is one, behind
 * those of the blocks before it.
 */
static const char text[] =
    ".version 8.3\n.target %s\n.address_size 64\n"
    ".extern .shared .align 1024 .b8 box[];\n"
    ".visible .entry copy(.param .align 64 .b8 map[128], .param .align 4 .b8 at[32],\n"
    "    .param .u64 in, .param .u64 out, .param .u32 bytes, .param .u32 expected,\n"
    "    .param .u64 other) %s\n"
    "{\n"
    "    .shared .align 8 .b64 bar;\n"
    "    .reg .pred %%p<4>;\n    .reg .b16 %%h<4>;\n    .reg .b32 %%r<24>;\n"
    "    .reg .b64 %%rd<16>;\n"
    "    mov.u32 %%r0, %%tid.x;\n    mov.u32 %%r1, box;\n    mov.u32 %%r2, bar;\n"
    "    ld.param.u32 %%r3, [bytes];\n    ld.param.u32 %%r4, [expected];\n"
    "    ld.param.u64 %%rd1, [in];\n    ld.param.u64 %%rd2, [out];\n"
    "    ld.param.u32 %%r5, [at];\n    ld.param.u32 %%r6, [at+4];\n    ld.param.u32 %%r7, [at+8];\n"
    "    ld.param.u32 %%r8, [at+12];\n    ld.param.u32 %%r9, [at+16];\n"
    "    ld.param.u32 %%r10, [at+20];\n    ld.param.u32 %%r11, [at+24];\n"
    "    ld.param.u32 %%r12, [at+28];\n"
    "    cvt.u16.u32 %%h0, %%r10;\n    cvt.u16.u32 %%h1, %%r11;\n    cvt.u16.u32 %%h2, %%r12;\n"
    "    mov.b64 %%rd3, map;\n    cvta.param.u64 %%rd3, %%rd3;\n"
    "    ld.param.u64 %%rd4, [other];\n"
    "    setp.eq.u64 %%p0, %%rd1, 0;\n    @%%p0 bra filled;\n"
    "    shl.b32 %%r13, %%r0, 2;\n"
    "fill:\n    setp.ge.u32 %%p0, %%r13, %%r3;\n    @%%p0 bra filled;\n"
    "    cvt.u64.u32 %%rd5, %%r13;\n    add.u64 %%rd5, %%rd5, %%rd1;\n"
    "    ld.global.u32 %%r14, [%%rd5];\n    add.u32 %%r15, %%r1, %%r13;\n"
    "    st.shared.u32 [%%r15], %%r14;\n    add.u32 %%r13, %%r13, 512;\n    bra fill;\n"
    "filled:\n"
    "    setp.ne.u32 %%p1, %%r0, 0;\n    @%%p1 bra ready;\n"
    "    mbarrier.init.shared.b64 [%%r2], 1;\n    fence.mbarrier_init.release.cluster;\n"
    "ready:\n"
    "    fence.proxy.async;\n    bar.sync 0;\n"
    "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n"
    "    mov.u32 %%r16, %%cluster_ctarank;\n"
    "    @%%p1 bra wait;\n"
    "    mbarrier.arrive.expect_tx.shared.b64 %%rd6, [%%r2], %%r4;\n"
    "    %s\n"
    "wait:\n    mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0;\n    @!%%p2 bra wait;\n"
    "    setp.eq.u64 %%p0, %%rd2, 0;\n    @%%p0 bra done;\n"
    "    shl.b32 %%r13, %%r0, 2;\n    mul.lo.u32 %%r17, %%r16, %%r3;\n"
    "empty:\n    setp.ge.u32 %%p0, %%r13, %%r3;\n    @%%p0 bra done;\n"
    "    add.u32 %%r15, %%r1, %%r13;\n    ld.shared.u32 %%r14, [%%r15];\n"
    "    add.u32 %%r18, %%r17, %%r13;\n    cvt.u64.u32 %%rd5, %%r18;\n"
    "    add.u64 %%rd5, %%rd5, %%rd2;\n    st.global.u32 [%%rd5], %%r14;\n"
    "    add.u32 %%r13, %%r13, 512;\n    bra empty;\n"
    "done:\n    barrier.cluster.arrive;\n    barrier.cluster.wait;\n    ret;\n"
    "}\n";

static const char *const coordinates[] = {"",
                                          "{%r5}",
                                          "{%r5, %r6}",
                                          "{%r5, %r6, %r7}",
                                          "{%r5, %r6, %r7, %r8}",
                                          "{%r5, %r6, %r7, %r8, %r9}"};
static const char *const offsets[] = {"", "", "", "{%h0}", "{%h0, %h1}", "{%h0, %h1, %h2}"};

struct kernel {
    CUmodule module;
    CUfunction function;
    char statement[400];
};

static struct kernel make_kernel(const char *target, const char *directive, const char *statement)
{
    size_t size = sizeof(text) + strlen(statement) + 200;
    char *whole = malloc(size);
    struct kernel kernel;

    snprintf(whole, size, text, target, directive, statement);
    snprintf(kernel.statement, sizeof(kernel.statement), "%s", statement);
    MUST(cuModuleLoadData(&kernel.module, whole));
    MUST(cuModuleGetFunction(&kernel.function, kernel.module, "copy"));
    MUST(cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            BOX_BYTES + 1024));
    free(whole);
    return kernel;
}

static struct kernel load_kernel(const struct map *map)
{
    char statement[400];

    snprintf(statement, sizeof(statement),
             "cp.async.bulk.tensor.%ud.shared::cluster.global%s.mbarrier::complete_tx::bytes "
             "[%%r1], [%%rd3, %s], [%%r2]%s%s;",
             map->rank, map->is_im2col ? ".im2col" : ".tile", coordinates[map->rank],
             map->is_im2col ? ", " : "", map->is_im2col ? offsets[map->rank] : "");
    return make_kernel("sm_90", "", statement);
}

static struct kernel store_kernel(const struct map *map, const char *operation)
{
    char statement[400];

    snprintf(statement, sizeof(statement),
             "cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.bulk_group "
             "[%%rd3, %s], [%%r1]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
             operation ? "reduce." : "", map->rank, operation ? operation : "",
             map->is_im2col ? ".im2col_no_offs" : ".tile", coordinates[map->rank]);
    return make_kernel("sm_90", "", statement);
}

/* What the last call made. */
static CUtensorMap *encode(const struct map *map)
{
    static CUtensorMap encoded;
    void *address = (void *)(uintptr_t)tensor;

    if (map->is_im2col)
        MUST(cuTensorMapEncodeIm2col(&encoded, map->type, map->rank, address, map->dims,
                                     map->strides, map->lower, map->upper, map->channels,
                                     map->pixels, map->steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                     map->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, map->fill));
    else
        MUST(cuTensorMapEncodeTiled(&encoded, map->type, map->rank, address, map->dims,
                                    map->strides, map->box, map->steps,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, map->swizzle,
                                    CU_TENSOR_MAP_L2_PROMOTION_NONE, map->fill));
    return &encoded;
}

static bool is_wanted(void)
{
    return ++copies >= first_copy;
}

static void describe(const char *statement, const struct map *map, const struct place *place)
{
    printf("copy %u: %s\n  %u dimensions, elements of %u bytes, swizzle %d, fill %d, box", copies,
           statement, map->rank, map->element, (int)map->swizzle, (int)map->fill);
    for (unsigned i = 0; i < map->rank; i++)
        printf(" %u/%u", map->box[i], map->steps[i]);
    printf(", at");
    for (unsigned i = 0; i < map->rank; i++)
        printf(" %d", place->start[i]);
    printf("\n");
}

struct launch {
    CUdeviceptr in, out, other;
    unsigned bytes, expected, blocks;
};

/* The map is described if the copy faults; `encoded` may be another, where the kernel has its own.
 */
static void launch(const struct kernel *kernel, const struct map *map, CUtensorMap *encoded,
                   const struct place *place, const struct launch *how)
{
    struct launch copy = *how;
    int at[8];
    void *parameters[] = {encoded,        at,         &copy.in, &copy.out, &copy.bytes,
                          &copy.expected, &copy.other};

    memcpy(at, place->start, sizeof(place->start));
    memcpy(at + 5, place->offsets, sizeof(place->offsets));
    MUST(cuLaunchKernel(kernel->function, how->blocks, 1, 1, 128, 1, 1, BOX_BYTES, NULL, parameters,
                        NULL));
    CUresult result = cuCtxSynchronize();
    if (result != CUDA_SUCCESS)
        describe(kernel->statement, map, place);
    MUST(result);
}

/* ---- Loads ---- */

static bool is_nan(const struct map *map, const unsigned char *element)
{
    unsigned long long bits = 0;

    memcpy(&bits, element, map->element);
    switch (map->type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        return (bits & 0x7fff) > 0x7c00;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
        return (bits & 0x7fff) > 0x7f80;
    default:
        return (bits & 0x7fffffff) > 0x7f800000;
    }
}

static bool element_is(const struct map *map, const unsigned char *element, long from)
{
    static const unsigned char zeros[8];

    if (from >= 0)
        return memcmp(element, host + from, map->element) == 0;
    return map->fill ? is_nan(map, element) : memcmp(element, zeros, map->element) == 0;
}

static unsigned wrong_elements(const struct map *map, const struct place *place,
                               const unsigned char *box)
{
    unsigned wrong = 0;

    for (unsigned row = 0; row < rows(map); row++)
        for (unsigned column = 0; column < row_elements(map); column++)
            wrong += !element_is(map, box + offset_in_box(map, row, column),
                                 offset_in_tensor(map, place, row, column));
    return wrong;
}

static void reset(void)
{
    MUST(cuMemcpyHtoD_v2(tensor, host, TENSOR_BYTES));
    MUST(cuMemsetD8_v2(box_out, 0x55, BOX_BYTES));
}

static void loads(const struct map *map, const struct place *places, unsigned count)
{
    struct kernel kernel = load_kernel(map);
    unsigned char *box = malloc(BOX_BYTES);

    for (unsigned i = 0; i < count; i++) {
        if (!is_wanted())
            continue;
        reset();
        launch(
            &kernel, map, encode(map), &places[i],
            &(struct launch){
                .out = box_out, .bytes = box_bytes(map), .expected = box_bytes(map), .blocks = 1});
        MUST(cuMemcpyDtoH_v2(box, box_out, BOX_BYTES));
        IS_TRUE(wrong_elements(map, &places[i], box) == 0);
    }
    free(box);
    MUST(cuModuleUnload(kernel.module));
}

#define COUNT(array) (sizeof(array) / sizeof(array[0]))

static const struct map line = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                                .element = 4,
                                .rank = 1,
                                .dims = {1000},
                                .box = {64},
                                .steps = {1}};
static const struct map matrix = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                  .element = 2,
                                  .rank = 2,
                                  .dims = {200, 50},
                                  .strides = {416},
                                  .box = {64, 32},
                                  .steps = {1, 1}};

static void lines_and_matrices(void)
{
    static const struct place of_line[] = {{{0}}, {{100}}, {{960}}, {{-12}}, {{2000}}, {{-64}}};
    static const struct place of_matrix[] = {{{0, 0}},    {{64, 18}}, {{168, 40}}, {{-8, -5}},
                                             {{-104, 3}}, {{8, 60}},  {{152, -31}}};
    struct map map = line;

    loads(&map, of_line, COUNT(of_line));
    map.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    map.element = 8;
    loads(&map, of_line, COUNT(of_line));
    map = matrix;
    loads(&map, of_matrix, COUNT(of_matrix));
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    loads(&map, of_matrix, COUNT(of_matrix));
    map.box[0] = 32;
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    loads(&map, of_matrix, COUNT(of_matrix));
    map.box[0] = 16;
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    loads(&map, of_matrix, COUNT(of_matrix));
    map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    loads(&map, of_matrix, COUNT(of_matrix));
    map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    loads(&map, of_matrix, COUNT(of_matrix));
}

static const struct map many = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .element = 1,
                                .rank = 5,
                                .dims = {40, 6, 5, 4, 7},
                                .strides = {48, 288, 1440, 5760},
                                .box = {32, 4, 3, 4, 3},
                                .steps = {1, 1, 1, 1, 1}};

static void many_dimensions(void)
{
    static const struct place places[] = {
        {{0, 0, 0, 0, 0}}, {{16, 2, 1, 0, 4}}, {{32, 4, 3, 2, 5}}, {{-16, -1, -2, -1, -1}}};
    struct map map = many;

    loads(&map, places, COUNT(places));
    map.rank = 4;
    loads(&map, places, COUNT(places));
    map.rank = 3;
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    loads(&map, places, COUNT(places));
}

static void steps(void)
{
    static const struct place places[] = {{{0, 0, 0}}, {{16, 1, 2}}, {{-16, -3, -1}}};
    struct map map = many;

    map.rank = 3;
    map.steps[1] = 2;
    map.steps[2] = 3;
    map.box[1] = 5; /* 3 elements */
    loads(&map, places, COUNT(places));
    map.rank = 2;
    loads(&map, places, COUNT(places));
}

/* Images with 64 channels, of which a filter of 3 by 3 sees one element after the other. */
static const struct map images = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                  .element = 2,
                                  .rank = 4,
                                  .is_im2col = true,
                                  .dims = {72, 9, 7, 5},
                                  .strides = {144, 1296, 9072},
                                  .steps = {1, 1, 1, 1, 1},
                                  .lower = {-1, -1},
                                  .upper = {-1, -1},
                                  .channels = 64,
                                  .pixels = 100,
                                  .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};

static void pixels(void)
{
    static const struct place places[] = {{{0, -1, -1, 0}, {0, 0}},
                                          {{0, -1, -1, 1}, {2, 1}},
                                          {{16, 3, 2, 3}, {1, 2}},
                                          {{0, 7, 5, 4}, {2, 2}}};
    static const struct place of_steps[] = {
        {{0, -1, 0, 1}, {2, 1}}, {{16, 3, 2, 3}, {1, 2}}, {{0, 7, 5, 4}, {2, 2}}};
    static const struct place of_line[] = {{{0, -1, 0}, {1}}, {{8, 4, 2}, {2}}};
    static const struct place of_volume[] = {{{0, -1, -1, -1, 0}, {1, 0, 2}}};
    struct map map = images;

    loads(&map, places, COUNT(places));
    map.steps[1] = 2;
    map.steps[2] = 2;
    map.lower[1] = 0;
    loads(&map, of_steps, COUNT(of_steps));
    map = images;
    map.rank = 3;
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    loads(&map, of_line, COUNT(of_line));
    map = images;
    map.rank = 5;
    map.dims[0] = 16;
    map.channels = 16;
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    map.strides[3] = 45360;
    map.dims[4] = 3;
    map.lower[2] = -1;
    map.upper[2] = -1;
    loads(&map, of_volume, COUNT(of_volume));
}

/* Both blocks of a cluster get the box that the first one asks for. */
static void multicast(void)
{
    static const struct place place = {{64, 40}};
    struct map map = matrix;
    unsigned char *box = malloc(BOX_BYTES);
    struct kernel kernel = make_kernel(
        "sm_90", ".explicitcluster .reqnctapercluster 2, 1, 1",
        "setp.ne.u32 %p3, %r16, 0; mov.u16 %h3, 3; @!%p3 "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%r1], [%rd3, {%r5, %r6}], [%r2], %h3;");

    map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    reset();
    launch(&kernel, &map, encode(&map), &place,
           &(struct launch){
               .out = box_out, .bytes = box_bytes(&map), .expected = box_bytes(&map), .blocks = 2});
    MUST(cuMemcpyDtoH_v2(box, box_out, BOX_BYTES));
    IS_TRUE(wrong_elements(&map, &place, box) == 0);
    IS_TRUE(wrong_elements(&map, &place, box + box_bytes(&map)) == 0);
    free(box);
    MUST(cuModuleUnload(kernel.module));
}

/* ---- Stores and reductions ---- */

typedef void (*combine_fn)(unsigned char *to, const unsigned char *from);

static void combine_add(unsigned char *to, const unsigned char *from)
{
    uint32_t a, b;

    memcpy(&a, to, 4);
    memcpy(&b, from, 4);
    a += b;
    memcpy(to, &a, 4);
}

static void combine_min(unsigned char *to, const unsigned char *from)
{
    int32_t a, b;

    memcpy(&a, to, 4);
    memcpy(&b, from, 4);
    memcpy(to, a < b ? &a : &b, 4);
}

static void combine_xor(unsigned char *to, const unsigned char *from)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] ^= from[i];
}

static void stores(const struct map *map, const struct place *places, unsigned count,
                   const char *operation, combine_fn combine)
{
    struct kernel kernel = store_kernel(map, operation);
    unsigned char *box = malloc(BOX_BYTES), *wanted = malloc(TENSOR_BYTES);
    unsigned char *found = malloc(TENSOR_BYTES);

    for (unsigned i = 0; i < BOX_BYTES; i++)
        box[i] = (unsigned char)(i * 151 + i / 256);
    MUST(cuMemcpyHtoD_v2(box_in, box, BOX_BYTES));
    for (unsigned i = 0; i < count; i++) {
        if (!is_wanted())
            continue;
        reset();
        memcpy(wanted, host, TENSOR_BYTES);
        for (unsigned row = 0; row < rows(map); row++)
            for (unsigned column = 0; column < row_elements(map); column++) {
                long to = offset_in_tensor(map, &places[i], row, column);
                const unsigned char *from = box + offset_in_box(map, row, column);

                if (to >= 0 && combine)
                    combine(wanted + to, from);
                else if (to >= 0)
                    memcpy(wanted + to, from, map->element);
            }
        launch(&kernel, map, encode(map), &places[i],
               &(struct launch){.in = box_in, .bytes = box_bytes(map), .blocks = 1});
        MUST(cuMemcpyDtoH_v2(found, tensor, TENSOR_BYTES));
        IS_TRUE(memcmp(wanted, found, TENSOR_BYTES) == 0);
    }
    free(box);
    free(wanted);
    free(found);
    MUST(cuModuleUnload(kernel.module));
}

static void boxes_are_stored(void)
{
    static const struct place of_line[] = {{{0}}, {{960}}, {{100}}, {{2000}}};
    static const struct place of_matrix[] = {{{0, 0}}, {{168, 40}}, {{8, 5}}};
    static const struct place of_many[] = {{{0, 0, 0, 0, 0}}, {{0, 2, 1, 0, 4}}};
    static const struct place of_images[] = {{{0, 0, 0, 0}}, {{16, 3, 2, 3}}, {{0, 8, 6, 2}}};
    struct map map = matrix;

    stores(&line, of_line, COUNT(of_line), NULL, NULL);
    stores(&matrix, of_matrix, COUNT(of_matrix), NULL, NULL);
    map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    stores(&map, of_matrix, COUNT(of_matrix), NULL, NULL);
    stores(&many, of_many, COUNT(of_many), NULL, NULL);
    map = images;
    memset(map.lower, 0, sizeof(map.lower));
    memset(map.upper, 0, sizeof(map.upper));
    stores(&map, of_images, COUNT(of_images), NULL, NULL);
}

static void boxes_are_reduced(void)
{
    static const struct place places[] = {{{0}}, {{960}}, {{100}}};

    stores(&line, places, COUNT(places), ".add", combine_add);
    stores(&line, places, COUNT(places), ".min", combine_min);
    stores(&line, places, COUNT(places), ".xor", combine_xor);
}

/* ---- Maps that kernels make ---- */

/* From a map of a line one of a matrix, at another address: in shared memory, then in global. */
static const char replacing[] =
    ".version 8.3\n.target sm_90a\n.address_size 64\n"
    ".visible .entry make(.param .align 64 .b8 map[128], .param .u64 address, .param .u64 to)\n"
    "{\n"
    "    .shared .align 128 .b8 own[128];\n"
    "    .reg .pred %p0;\n    .reg .b32 %r<8>;\n    .reg .b64 %rd<8>;\n"
    "    mov.u32 %r0, %tid.x;\n    mov.u32 %r1, own;\n    shl.b32 %r2, %r0, 2;\n"
    "    cvt.u64.u32 %rd0, %r2;\n    mov.b64 %rd1, map;\n    add.u64 %rd1, %rd1, %rd0;\n"
    "    ld.param.b32 %r3, [%rd1];\n    add.u32 %r2, %r2, %r1;\n    st.shared.b32 [%r2], %r3;\n"
    "    bar.sync 0;\n    setp.ne.u32 %p0, %r0, 0;\n    @%p0 bra made;\n"
    "    ld.param.u64 %rd2, [address];\n    mov.u64 %rd4, 416;\n    mov.u32 %r4, 200;\n"
    "    mov.u32 %r5, 50;\n    mov.u32 %r6, 32;\n"
    "    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd2;\n"
    "    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 6;\n"
    "    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;\n"
    "    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, %r4;\n"
    "    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, %r5;\n"
    "    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %rd4;\n"
    "    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, %r6;\n"
    "    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 1, 1;\n"
    "    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 3;\n"
    "    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 1;\n"
    "made:\n"
    "    bar.sync 0;\n    ld.param.u64 %rd3, [to];\n"
    "    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%rd3], [%r1], 128;\n"
    "    ret;\n"
    "}\n";

static void make_map(CUtensorMap *from)
{
    CUmodule module;
    CUfunction make;
    void *parameters[] = {from, &tensor, &map_room};

    MUST(cuModuleLoadData(&module, replacing));
    MUST(cuModuleGetFunction(&make, module, "make"));
    MUST(cuLaunchKernel(make, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    MUST(cuCtxSynchronize());
    MUST(cuModuleUnload(module));
}

static void maps_are_replaced(void)
{
    static const struct place place = {{168, 40}};
    struct map map = matrix;
    unsigned char *box = malloc(BOX_BYTES);
    struct kernel kernel =
        make_kernel("sm_90", "",
                    "fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;"
                    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd4, {%r5, %r6}];"
                    "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                    ".mbarrier::complete_tx::bytes [%r1], [%rd4, {%r5, %r6}], [%r2];");

    map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
    reset();
    make_map(encode(&line));
    launch(&kernel, &map, encode(&line), &place,
           &(struct launch){.out = box_out,
                            .other = map_room,
                            .bytes = box_bytes(&map),
                            .expected = box_bytes(&map),
                            .blocks = 1});
    MUST(cuMemcpyDtoH_v2(box, box_out, BOX_BYTES));
    IS_TRUE(wrong_elements(&map, &place, box) == 0);
    free(box);
    MUST(cuModuleUnload(kernel.module));
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"lines_and_matrices", lines_and_matrices},
    {"many_dimensions", many_dimensions},
    {"steps", steps},
    {"pixels", pixels},
    {"multicast", multicast},
    {"boxes_are_stored", boxes_are_stored},
    {"boxes_are_reduced", boxes_are_reduced},
    {"maps_are_replaced", maps_are_replaced},
};

int main(int count, char **arguments)
{
    CUdevice device = check_open();
    int major = 0;

    MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (major != 9) {
        printf("the kernels are for devices of compute capability 9.0\n");
        return 77;
    }
    first_copy = count > 2 ? (unsigned)atoi(arguments[2]) : 0;
    host = malloc(TENSOR_BYTES);
    for (unsigned i = 0; i < TENSOR_BYTES; i++)
        host[i] = (unsigned char)((i * 2654435761u) >> 13);
    MUST(cuMemAlloc_v2(&tensor, TENSOR_BYTES));
    MUST(cuMemAlloc_v2(&box_in, BOX_BYTES));
    MUST(cuMemAlloc_v2(&box_out, BOX_BYTES));
    MUST(cuMemAlloc_v2(&map_room, 128));
    for (unsigned i = 0; i < COUNT(tests); i++)
        if (count < 2 || strcmp(arguments[1], tests[i].name) == 0)
            check_run(tests[i].run, tests[i].name);
    free(host);
    return check_close();
}
