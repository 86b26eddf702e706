/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions to half and bfloat16 from every type with every rounding, against a search among all
 * numbers of the format. Also the borrow of subtractions in a chain.
 */
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT 1024

struct format {
    const char *name;
    unsigned mantissa;
    int least; /* exponent of the smallest normal number */
};

static const struct format formats[] = {{"f16", 10, -14}, {"bf16", 7, -126}};

static unsigned infinity_of(const struct format *format)
{
    return 0x7fffu & ~((1u << format->mantissa) - 1);
}

/* Codes of numbers are as ordered as the numbers; infinity counts as the next power of two. */
static long double number(const struct format *format, unsigned code)
{
    unsigned low = code & ((1u << format->mantissa) - 1), exponent = code >> format->mantissa;
    int shift = format->least - (int)format->mantissa;
    return exponent ? ldexpl((1u << format->mantissa) + low, shift + (int)exponent - 1)
                    : ldexpl(low, shift);
}

static unsigned expected(const struct format *format, long double x, char rounding)
{
    unsigned sign = signbit(x) ? 0x8000 : 0, low = 0, high = infinity_of(format);
    long double magnitude = fabsl(x);
    if (isnan(x))
        return 0x7fff;
    if (isinf(x))
        return sign | high;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        *(number(format, middle) <= magnitude ? &low : &high) = middle;
    }
    long double below = magnitude - number(format, low), above = number(format, high) - magnitude;
    bool up = rounding == 'n'   ? below > above || (below == above && (low & 1))
              : rounding == 'z' ? false
                                : (rounding == 'm') == (sign != 0) && below > 0;
    /* To nearest, whatever is half a step beyond the largest number is infinite. */
    return sign | (up ? high : low);
}

static const struct source {
    const char *type;
    const char *reg; /* its type and name */
    const char *name;
    unsigned size;
} sources[] = {
    {"u8", ".b16", "%h1", 1},  {"s8", ".b16", "%h1", 1},  {"u16", ".b16", "%h1", 2},
    {"s16", ".b16", "%h1", 2}, {"u32", ".b32", "%r1", 4}, {"s32", ".b32", "%r1", 4},
    {"u64", ".b64", "%l1", 8}, {"s64", ".b64", "%l1", 8}, {"f32", ".f32", "%f1", 4},
    {"f64", ".f64", "%d1", 8}, {"f16", ".b16", "%h1", 2}, {"bf16", ".b16", "%h1", 2},
};

static long double from_code(const struct format *format, unsigned code)
{
    unsigned magnitude = code & 0x7fff;
    long double value = magnitude > infinity_of(format)    ? NAN
                        : magnitude == infinity_of(format) ? INFINITY
                                                           : number(format, magnitude);
    return code & 0x8000 ? -value : value;
}

/* What the bits are as a value of this type. */
static long double value_of(const char *type, uint64_t bits)
{
    float narrow;
    double wide;
    uint32_t low = (uint32_t)bits;
    memcpy(&narrow, &low, sizeof(narrow));
    memcpy(&wide, &bits, sizeof(wide));
    return strcmp(type, "u8") == 0    ? (uint8_t)bits
           : strcmp(type, "s8") == 0  ? (int8_t)bits
           : strcmp(type, "u16") == 0 ? (uint16_t)bits
           : strcmp(type, "s16") == 0 ? (int16_t)bits
           : strcmp(type, "u32") == 0 ? (uint32_t)bits
           : strcmp(type, "s32") == 0 ? (int32_t)bits
           : strcmp(type, "u64") == 0 ? bits
           : strcmp(type, "s64") == 0 ? (long double)(int64_t)bits
           : strcmp(type, "f32") == 0 ? (long double)narrow
           : strcmp(type, "f64") == 0 ? (long double)wide
           : strcmp(type, "f16") == 0 ? from_code(&formats[0], (uint16_t)bits)
                                      : from_code(&formats[1], (uint16_t)bits);
}

/* Of all magnitudes, and close to numbers of both formats and to what lies between them. */
static uint64_t some_bits(const char *type, uint64_t *state, unsigned i)
{
    uint64_t random = (uint64_t)unit_random(state) << 40 ^ (uint64_t)unit_random(state) << 16 ^
                      unit_random(state);
    if (type[0] == 'u' || type[0] == 's')
        return i % 4 == 0 ? (random >> (i / 4 % 64) & ~0xfffull) + i % 3 - 1 : random >> i % 64;
    if (strcmp(type, "f64") == 0) {
        double value = ldexp((double)(int32_t)random, (int)(i % 220) - 160);
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        return i % 3 ? bits & ~0xffffffffffull : i == 0 ? 0x7ff0000000000000 : bits;
    }
    return i % 2 ? random & 0xfffff000 : random;
}

static void check(const struct source *source, const struct format *format, char rounding)
{
    char text[2048];
    snprintf(text, sizeof(text),
             ".version 8.6\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
             ".reg %s %s; .reg .b16 %%to; .reg .b32 %%i<4>; .reg .b64 %%a<4>;\n"
             "ld.param.u64 %%a1, [out];\nld.param.u64 %%a2, [in];\nmov.u32 %%i1, %%tid.x;\n"
             "mul.wide.u32 %%a3, %%i1, 8;\nadd.u64 %%a2, %%a2, %%a3;\n"
             "mul.wide.u32 %%a3, %%i1, 2;\nadd.u64 %%a1, %%a1, %%a3;\n"
             "ld.global.%s%u %s, [%%a2];\ncvt.r%c.%s.%s %%to, %s;\nst.global.b16 [%%a1], %%to;\n"
             "ret;\n}\n",
             source->reg, source->name,
             source->type[0] == 'u' || source->type[0] == 's' ? (char[]){source->type[0], 0} : "b",
             source->size * 8, source->name, rounding, format->name, source->type, source->name);
    struct machine *machine = machine_create_from(text);
    uint16_t *out = machine_memory(machine, COUNT * sizeof(*out));
    uint64_t *in = machine_memory(machine, COUNT * sizeof(*in)), state = 3;
    for (unsigned i = 0; i < COUNT; i++)
        in[i] = some_bits(source->type, &state, i);
    if (machine_launch(machine, "k", 1, COUNT, 0, (void *[]){&out, &in}) != CUDA_SUCCESS)
        fail_msg("%s", machine->message);
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned wanted = expected(format, value_of(source->type, in[i]), rounding);
        bool same = out[i] == wanted || ((out[i] & 0x7fff) > infinity_of(format) &&
                                         (wanted & 0x7fff) > infinity_of(format));
        if (!same)
            fail_msg("cvt.r%c.%s.%s of %llx: %x, not %x", rounding, format->name, source->type,
                     (unsigned long long)in[i], out[i], wanted);
    }
    machine_destroy(machine);
}

static void test_conversions(void **state)
{
    for (unsigned i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        for (unsigned j = 0; j < 2; j++) {
            if (strcmp(sources[i].type, formats[j].name) == 0)
                continue;
            for (const char *rounding = "nzmp"; *rounding; rounding++)
                check(&sources[i], &formats[j], *rounding);
        }
    }
}

/* A subtraction leaves a carry where nothing was borrowed, as nvcc's 128-bit division has it. */
static void test_borrow(void **state)
{
    struct machine *machine = machine_create_from(
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<8>; .reg .b64 %a<2>;\n"
        "ld.param.u64 %a1, [out];\n"
        "sub.cc.u32 %r1, 5, 7;\nsubc.u32 %r2, 9, 3;\naddc.u32 %r3, 0, 0;\n"
        "sub.cc.u32 %r4, 7, 5;\nsubc.cc.u32 %r5, 3, 3;\naddc.u32 %r6, 0, 0;\n"
        "st.global.v2.u32 [%a1], {%r1, %r2};\nst.global.v2.u32 [%a1+8], {%r3, %r4};\n"
        "st.global.v2.u32 [%a1+16], {%r5, %r6};\nret;\n}\n");
    static const uint32_t wanted[6] = {0xfffffffe, 5, 0, 2, 0, 1};
    uint32_t *out = machine_memory(machine, sizeof(wanted));
    assert_int_equal(machine_launch(machine, "k", 1, 1, 0, (void *[]){&out}), CUDA_SUCCESS);
    assert_memory_equal(out, wanted, sizeof(wanted));
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_borrow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
