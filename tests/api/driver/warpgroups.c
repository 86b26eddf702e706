/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma: products of small integers, which every order of sums gives exactly, of all types, in all
 * the layouts that descriptors say. Where elements lie is written down here as PTX describes it.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 64
#define COLUMNS 256
#define DEPTH 256
#define THREADS 128
#define A_BYTES (16u << 10)
#define B_BYTES (64u << 10)

/* ---- Elements ---- */

enum kind { HALF, BRAIN, TF32, E4M3, E5M2, SIGNED, UNSIGNED, BIT };

static const struct {
    const char *name;
    unsigned bits;
} kinds[] = {
    [HALF] = {"f16", 16}, [BRAIN] = {"bf16", 16}, [TF32] = {"tf32", 32},  [E4M3] = {"e4m3", 8},
    [E5M2] = {"e5m2", 8}, [SIGNED] = {"s8", 8},   [UNSIGNED] = {"u8", 8}, [BIT] = {"b1", 1},
};

/* The bits of 0, 1, 2, 3 and -1, -2, -3 in a format with so many bits of exponent and mantissa. */
static uint32_t small_float(int value, unsigned exponent, unsigned mantissa)
{
    uint32_t bias = (1u << (exponent - 1)) - 1, size = value < 0 ? -value : value;
    uint32_t sign = (uint32_t)(value < 0) << (exponent + mantissa);

    if (size == 0)
        return 0;
    return sign | (bias + (size > 1)) << mantissa | (size == 3 ? 1u << (mantissa - 1) : 0);
}

static uint32_t encode(enum kind kind, int value)
{
    switch (kind) {
    case HALF:
        return small_float(value, 5, 10);
    case BRAIN:
        return small_float(value, 8, 7);
    case TF32:
        return small_float(value, 8, 23);
    case E4M3:
        return small_float(value, 4, 3);
    case E5M2:
        return small_float(value, 5, 2);
    default:
        return (uint32_t)value & 0xff;
    }
}

static int some_value(enum kind kind)
{
    static uint32_t state = 7;

    state = state * 1664525 + 1013904223;
    if (kind == BIT)
        return (int)(state >> 16 & 1);
    return (int)(state >> 16) % 4 * (kind != UNSIGNED && (state >> 8 & 1) ? -1 : 1);
}

/* ---- Where they lie ---- */

struct layout {
    unsigned span;   /* bytes within which chunks are exchanged; 16: none */
    bool across;     /* M or N are neighbors in memory */
    unsigned offset; /* bytes along k that are skipped */
};

/* The two distances of a descriptor. */
static void distances(const struct layout *layout, unsigned *ret_leading, unsigned *ret_stride)
{
    if (layout->span == 16) {
        *ret_leading = 128;
        *ret_stride = 256;
    } else {
        *ret_leading = layout->across ? layout->span * 16 : 16;
        *ret_stride = layout->span * 8;
    }
}

static uint64_t descriptor(const struct layout *layout, unsigned start)
{
    unsigned leading, stride;
    uint64_t mode = layout->span == 128 ? 1 : layout->span == 64 ? 2 : layout->span == 32 ? 3 : 0;

    distances(layout, &leading, &stride);
    return (start + layout->offset) >> 4 | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(stride >> 4) << 32 | mode << 62;
}

/* The byte of an element: `row` of A, or column of B, and the byte along k (or, across, the k). */
static unsigned place_of(const struct layout *layout, unsigned row, unsigned along)
{
    unsigned leading, stride, at;

    distances(layout, &leading, &stride);
    if (layout->span == 16 && !layout->across)
        return row / 8 * stride + row % 8 * 16 + along / 16 * leading + along % 16;
    if (layout->span == 16)
        return row / 8 * stride + row % 8 * 2 + along / 8 * leading + along % 8 * 16;
    if (layout->across) {
        unsigned wide = layout->span / 2;

        at = row / wide * leading + row % wide * 2 + along / 8 * stride + along % 8 * layout->span;
    } else {
        at = row * layout->span + layout->offset + along;
    }
    return at ^ ((at >> 7) & (layout->span / 16 - 1)) << 4;
}

static void put(unsigned char *image, const struct layout *layout, enum kind kind, unsigned row,
                unsigned k, int value)
{
    unsigned bits = kinds[kind].bits;
    uint32_t encoded = encode(kind, value);

    if (kind == BIT)
        image[place_of(layout, row, k / 8)] |= (unsigned char)(value << k % 8);
    else if (layout->across)
        memcpy(image + place_of(layout, row, k), &encoded, 2);
    else
        for (unsigned i = 0; i < bits / 8; i++)
            image[place_of(layout, row, k * bits / 8 + i)] = (unsigned char)(encoded >> 8 * i);
}

/* ---- Products ---- */

struct product {
    enum kind a_kind, b_kind;
    const char *sums; /* the type of D */
    unsigned n;
    struct layout a, b;
    bool a_in_registers, adds, negates, saturates;
};

static int a[ROWS][DEPTH], b[COLUMNS][DEPTH], d[ROWS][COLUMNS];
static unsigned char a_image[A_BYTES], b_image[B_BYTES];
static uint32_t registers[THREADS][COLUMNS / 2], a_registers[THREADS][4];
static CUdeviceptr images, values, a_values;

static unsigned depth_of(const struct product *product)
{
    return 256 / kinds[product->a_kind].bits;
}

static bool is_of_halves(const struct product *product)
{
    return strcmp(product->sums, "f16") == 0;
}

static unsigned register_count(const struct product *product)
{
    return product->n / 2 / (is_of_halves(product) ? 2 : 1);
}

/* Which element of D is the i-th of a thread. */
static void place_in_d(unsigned thread, unsigned i, unsigned *ret_row, unsigned *ret_column)
{
    *ret_row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2);
    *ret_column = thread % 4 * 2 + i % 2 + 8 * (i / 4);
}

static uint32_t bits_of_sum(const struct product *product, int value)
{
    float number = (float)value;
    uint32_t bits = (uint32_t)value;

    if (strcmp(product->sums, "f32") == 0)
        memcpy(&bits, &number, sizeof(bits));
    return bits;
}

/* Integers up to 2048. */
static uint16_t half_of(int value)
{
    uint32_t size = (uint32_t)abs(value), exponent = 15;

    if (value == 0)
        return 0;
    size <<= 10;
    for (; size >= 2048; size >>= 1)
        exponent++;
    return (uint16_t)((value < 0 ? 0x8000 : 0) | exponent << 10 | (size & 0x3ff));
}

static void put_sum(const struct product *product, unsigned thread, unsigned i, int value)
{
    if (is_of_halves(product))
        ((uint16_t *)registers[thread])[i] = half_of(value);
    else
        registers[thread][i] = bits_of_sum(product, value);
}

static bool sum_is(const struct product *product, unsigned thread, unsigned i, int value)
{
    if (is_of_halves(product))
        return ((uint16_t *)registers[thread])[i] == half_of(value);
    return registers[thread][i] == bits_of_sum(product, value);
}

/* A as registers hold it: words along k. */
static void put_a_registers(const struct product *product)
{
    unsigned bits = kinds[product->a_kind].bits, per_word = 32 / bits;

    memset(a_registers, 0, sizeof(a_registers));
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (unsigned i = 0; i < 4; i++)
            for (unsigned j = 0; j < per_word; j++) {
                unsigned row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 2);
                unsigned k = (thread % 4 + 4 * (i / 2)) * per_word + j;
                uint32_t encoded = product->a_kind == BIT ? (uint32_t)a[row][k]
                                                          : encode(product->a_kind, a[row][k]);

                a_registers[thread][i] |= encoded << j * bits;
            }
}

static int multiply(const struct product *product, int x, int y)
{
    return product->a_kind == BIT ? x & y : product->negates ? -(x * y) : x * y;
}

static void make_problem(const struct product *product)
{
    memset(a_image, 0, sizeof(a_image));
    memset(b_image, 0, sizeof(b_image));
    for (unsigned k = 0; k < depth_of(product); k++) {
        for (unsigned row = 0; row < ROWS; row++) {
            a[row][k] = some_value(product->a_kind);
            put(a_image, &product->a, product->a_kind, row, k, a[row][k]);
        }
        for (unsigned column = 0; column < product->n; column++) {
            b[column][k] = some_value(product->b_kind);
            put(b_image, &product->b, product->b_kind, column, k, b[column][k]);
        }
    }
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned column = 0; column < product->n; column++)
            d[row][column] = product->saturates ? INT32_MAX - 5 : some_value(SIGNED) * 10;
    put_a_registers(product);
}

static int expected_sum(const struct product *product, unsigned row, unsigned column)
{
    long sum = product->adds ? d[row][column] : 0;

    for (unsigned k = 0; k < depth_of(product); k++)
        sum += multiply(product, a[row][k], b[column][k]);
    return sum > INT32_MAX ? INT32_MAX : (int)sum;
}

/* ---- The kernel ---- */

static void list(char **at, const char *prefix, unsigned count)
{
    *at += sprintf(*at, "{");
    for (unsigned i = 0; i < count; i++)
        *at += sprintf(*at, "%s%%%s%u", i ? ", " : "", prefix, i);
    *at += sprintf(*at, "}");
}

static const char *choices(const struct product *product, char text[64])
{
    bool of_16_bits = kinds[product->a_kind].bits == 16;
    char *at = text;

    if (strcmp(product->sums, "s32") == 0)
        return "";
    at += sprintf(at, ", %d, 1", product->negates ? -1 : 1);
    if (of_16_bits && !product->a_in_registers)
        at += sprintf(at, ", %d", product->a.across);
    if (of_16_bits)
        sprintf(at, ", %d", product->b.across);
    return text;
}

static void write_multiply(char **at, const struct product *product)
{
    char text[64];

    *at += sprintf(*at, "wgmma.mma_async.sync.aligned.m64n%uk%u%s.%s.%s.%s%s ", product->n,
                   depth_of(product), product->saturates ? ".satfinite" : "", product->sums,
                   kinds[product->a_kind].name, kinds[product->b_kind].name,
                   product->a_kind == BIT ? ".and.popc" : "");
    list(at, "d", register_count(product));
    *at += sprintf(*at, ", ");
    if (product->a_in_registers)
        list(at, "a", 4);
    else
        *at += sprintf(*at, "%%rd6");
    *at += sprintf(*at, ", %%rd7, %%p1%s;\n", choices(product, text));
}

/* The images go to shared memory, and each thread's part of D comes from memory and goes back. */
static const char head[] =
    ".version 8.4\n.target sm_90a\n.address_size 64\n"
    ".extern .shared .align 1024 .b8 box[];\n"
    ".visible .entry product(.param .u64 images, .param .u64 values, .param .u64 a_values,\n"
    "    .param .u64 a_descriptor, .param .u64 b_descriptor, .param .u32 adds)\n{\n"
    ".reg .b32 %d<128>;\n.reg .b32 %a<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<12>;\n"
    ".reg .pred %p<4>;\n"
    "ld.param.u64 %rd1, [images];\nld.param.u64 %rd2, [values];\nld.param.u64 %rd3, [a_values];\n"
    "mov.u32 %r0, %tid.x;\nmov.u32 %r1, box;\nshl.b32 %r2, %r0, 2;\n"
    "fill:\nsetp.ge.u32 %p0, %r2, 81920;\n@%p0 bra filled;\n"
    "cvt.u64.u32 %rd4, %r2;\nadd.u64 %rd4, %rd4, %rd1;\nld.global.u32 %r3, [%rd4];\n"
    "add.u32 %r4, %r1, %r2;\nst.shared.u32 [%r4], %r3;\nadd.u32 %r2, %r2, 512;\nbra fill;\n"
    "filled:\nfence.proxy.async;\nbar.sync 0;\n"
    "mad.wide.u32 %rd2, %r0, 512, %rd2;\nmad.wide.u32 %rd3, %r0, 16, %rd3;\n"
    "ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%rd3];\n"
    "ld.param.u32 %r5, [adds];\nsetp.ne.u32 %p1, %r5, 0;\n"
    "shr.u32 %r6, %r1, 4;\ncvt.u64.u32 %rd5, %r6;\n"
    "ld.param.u64 %rd6, [a_descriptor];\nadd.u64 %rd6, %rd6, %rd5;\n"
    "ld.param.u64 %rd7, [b_descriptor];\nadd.u64 %rd7, %rd7, %rd5;\n";

static char *kernel_text(const struct product *product)
{
    char *text = malloc(32u << 10), *at = text;

    at += sprintf(at, "%s", head);
    for (unsigned i = 0; i < register_count(product); i++)
        at += sprintf(at, "ld.global.u32 %%d%u, [%%rd2+%u];\n", i, 4 * i);
    at += sprintf(at, "wgmma.fence.sync.aligned;\n");
    write_multiply(&at, product);
    at += sprintf(at, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (unsigned i = 0; i < register_count(product); i++)
        at += sprintf(at, "st.global.u32 [%%rd2+%u], %%d%u;\n", 4 * i, i);
    sprintf(at, "ret;\n}\n");
    return text;
}

static void run_kernel(const struct product *product)
{
    uint64_t a_descriptor = descriptor(&product->a, 0);
    uint64_t b_descriptor = descriptor(&product->b, A_BYTES);
    uint32_t adds = product->adds;
    void *parameters[] = {&images, &values, &a_values, &a_descriptor, &b_descriptor, &adds};
    char *text = kernel_text(product);
    CUmodule module;
    CUfunction kernel;

    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetFunction(&kernel, module, "product"));
    MUST(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            A_BYTES + B_BYTES));
    MUST(cuMemcpyHtoD_v2(images, a_image, A_BYTES));
    MUST(cuMemcpyHtoD_v2(images + A_BYTES, b_image, B_BYTES));
    MUST(cuMemcpyHtoD_v2(values, registers, sizeof(registers)));
    MUST(cuMemcpyHtoD_v2(a_values, a_registers, sizeof(a_registers)));
    MUST(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, A_BYTES + B_BYTES, NULL, parameters, NULL));
    MUST(cuMemcpyDtoH_v2(registers, values, sizeof(registers)));
    MUST(cuModuleUnload(module));
    free(text);
}

static void check(const struct product *product)
{
    unsigned row, column, wrong = 0;

    make_problem(product);
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (unsigned i = 0; i < product->n / 2; i++) {
            place_in_d(thread, i, &row, &column);
            put_sum(product, thread, i, d[row][column]);
        }
    run_kernel(product);
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (unsigned i = 0; i < product->n / 2; i++) {
            place_in_d(thread, i, &row, &column);
            wrong += !sum_is(product, thread, i, expected_sum(product, row, column));
        }
    if (wrong)
        printf("m64n%uk%u.%s.%s.%s, spans %u and %u, across %d and %d: %u wrong\n", product->n,
               depth_of(product), product->sums, kinds[product->a_kind].name,
               kinds[product->b_kind].name, product->a.span, product->b.span, product->a.across,
               product->b.across, wrong);
    IS_TRUE(wrong == 0);
}

static const struct product simple = {.a_kind = HALF,
                                      .b_kind = HALF,
                                      .sums = "f32",
                                      .n = 64,
                                      .a = {.span = 128},
                                      .b = {.span = 128},
                                      .adds = true};

static void all_types(void)
{
    static const struct {
        enum kind a, b;
        const char *sums;
    } cases[] = {
        {HALF, HALF, "f16"},       {HALF, HALF, "f32"},     {BRAIN, BRAIN, "f32"},
        {TF32, TF32, "f32"},       {E4M3, E4M3, "f16"},     {E4M3, E5M2, "f32"},
        {E5M2, E4M3, "f32"},       {SIGNED, SIGNED, "s32"}, {SIGNED, UNSIGNED, "s32"},
        {UNSIGNED, SIGNED, "s32"}, {BIT, BIT, "s32"},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct product product = simple;

        product.a_kind = cases[i].a;
        product.b_kind = cases[i].b;
        product.sums = cases[i].sums;
        check(&product);
        product.a_in_registers = true;
        product.adds = false;
        check(&product);
    }
}

static void all_widths(void)
{
    static const unsigned widths[] = {8, 16, 24, 40, 96, 128, 256};

    for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        struct product product = simple;

        product.n = widths[i];
        check(&product);
        product.sums = "f16";
        check(&product);
        product.a_kind = product.b_kind = SIGNED;
        product.sums = "s32";
        if (widths[i] != 40)
            check(&product);
    }
}

static void all_layouts(void)
{
    static const unsigned spans[] = {16, 32, 64, 128};

    for (unsigned i = 0; i < 16; i++) {
        struct product product = simple;

        product.a.span = spans[i % 4];
        product.b.span = spans[i / 4];
        check(&product);
        product.b.across = true;
        check(&product);
        product.a.across = true;
        check(&product);
    }
}

/* Of rows longer than k, a later part. */
static void parts_of_rows(void)
{
    for (unsigned offset = 32; offset < 128; offset += 32) {
        struct product product = simple;

        product.a.offset = offset;
        product.b.offset = offset % 64;
        product.b.span = 64;
        check(&product);
    }
}

static void signs_and_limits(void)
{
    struct product product = simple;

    product.negates = true;
    check(&product);
    product.a_in_registers = true;
    check(&product);
    product = simple;
    product.a_kind = product.b_kind = UNSIGNED;
    product.sums = "s32";
    product.saturates = true;
    check(&product);
}

int main(void)
{
    CUdevice device = check_open();
    int major = 0;

    MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (major != 9) {
        printf("wgmma is for devices of compute capability 9.0\n");
        return 77;
    }
    MUST(cuMemAlloc_v2(&images, A_BYTES + B_BYTES));
    MUST(cuMemAlloc_v2(&values, sizeof(registers)));
    MUST(cuMemAlloc_v2(&a_values, sizeof(a_registers)));
    RUN(all_types);
    RUN(all_widths);
    RUN(all_layouts);
    RUN(parts_of_rows);
    RUN(signs_and_limits);
    return check_close();
}
