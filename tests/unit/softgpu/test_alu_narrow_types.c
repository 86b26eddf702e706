/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit floating point against a search for the nearest of all its numbers, integers packed, and
 * atomic operations on vectors.
 */
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096

static const char head[] = ".version 8.6\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
                           ".reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f32 %f<8>;\n"
                           "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n"
                           "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
                           "mad.lo.u32 %r3, %r1, 128, %r2;\nmul.wide.u32 %rd3, %r3, 4;\n"
                           "add.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\n";

static void run(const char *body, const void *in, void *ret_out)
{
    char text[2048];
    snprintf(text, sizeof(text), "%s%sret;\n}\n", head, body);
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, COUNT * 4), *from = machine_memory(machine, COUNT * 4);
    memcpy(from, in, COUNT * 4);
    CUresult result = machine_launch(machine, "k", COUNT / 128, 128, 0, (void *[]){&out, &from});
    if (result != CUDA_SUCCESS)
        fail_msg("%d: %s", result, machine->message);
    memcpy(ret_out, out, COUNT * 4);
    machine_destroy(machine);
}

static double number(unsigned code, unsigned mantissa)
{
    unsigned low = code & ((1u << mantissa) - 1), exponent = (code & 0x7f) >> mantissa;
    int bias = mantissa == 3 ? 7 : 15;
    double value = exponent ? ldexp((1u << mantissa) + low, (int)exponent - bias - (int)mantissa)
                            : ldexp(low, 1 - bias - (int)mantissa);
    return code & 0x80 ? -value : value;
}

/* The nearest code, the even one of two; codes of numbers are as ordered as the numbers. */
static unsigned nearest(double x, unsigned mantissa)
{
    unsigned most = mantissa == 3 ? 0x7e : 0x7b, best = 0;
    if (isnan(x))
        return 0x7f;
    if (fabs(x) > number(most, mantissa))
        return most | (signbit(x) ? 0x80 : 0);
    for (unsigned code = 1; code <= most; code++) {
        double now = fabs(number(code, mantissa) - fabs(x));
        double before = fabs(number(best, mantissa) - fabs(x));
        if (now < before || (now == before && code % 2 == 0))
            best = code;
    }
    return best | (signbit(x) ? 0x80 : 0);
}

static float some_float(unsigned i)
{
    static const float special[] = {0.f,      -0.f,       INFINITY,  -INFINITY, NAN,      448,
                                    464,      480,        57344,     61440,     0x1p-10f, 0x1.8p-9f,
                                    0x1p-17f, 0x1.8p-16f, 0x1p-140f, 1e38f};
    if (i < 16)
        return special[i];
    float value = ldexpf((float)(rand() % 4096) / 64, rand() % 34 - 22);
    return rand() % 2 ? value : -value;
}

static void check_from_floats(const char *opcode, unsigned mantissa, bool relu)
{
    float in[COUNT];
    uint32_t out[COUNT];
    char body[256];
    for (unsigned i = 0; i < COUNT; i++)
        in[i] = some_float(i);
    snprintf(body, sizeof(body),
             "ld.global.f32 %%f1, [%%rd2];\n%s %%h1, 0f40400000, %%f1;\n"
             "cvt.u32.u16 %%r4, %%h1;\nst.global.u32 [%%rd1], %%r4;\n",
             opcode);
    run(body, in, out);
    for (unsigned i = 0; i < COUNT; i++) {
        double x = relu && in[i] < 0 ? 0 : in[i];
        unsigned found = out[i] & 0xff, expected = nearest(x, mantissa);
        if ((found != expected && !(relu && x == 0 && (found & 0x7f) == 0)) ||
            out[i] >> 8 != nearest(3, mantissa))
            fail_msg("%s of %a: %x, not %x", opcode, in[i], out[i], expected);
    }
}

static void test_from_floats(void **state)
{
    check_from_floats("cvt.rn.satfinite.e4m3x2.f32", 3, false);
    check_from_floats("cvt.rn.satfinite.e5m2x2.f32", 2, false);
    check_from_floats("cvt.rn.satfinite.relu.e4m3x2.f32", 3, true);
}

/* To halves and back: every number keeps its code. */
static void check_round_trip(const char *type, unsigned infinity)
{
    uint32_t in[COUNT], out[COUNT];
    char body[512];
    for (unsigned i = 0; i < COUNT; i++)
        in[i] = (i & 0xff) | (~i & 0xff) << 8;
    snprintf(body, sizeof(body),
             "ld.global.u16 %%h1, [%%rd2];\ncvt.rn.f16x2.%sx2 %%r5, %%h1;\n"
             "cvt.rn.satfinite.%sx2.f16x2 %%h2, %%r5;\ncvt.u32.u16 %%r4, %%h2;\n"
             "st.global.u32 [%%rd1], %%r4;\n",
             type, type);
    run(body, in, out);
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned shift = 0; shift < 16; shift += 8) {
            unsigned code = in[i] >> shift & 0xff, found = out[i] >> shift & 0xff;
            unsigned magnitude = code & 0x7f;
            unsigned expected = magnitude > infinity    ? 0x7f
                                : magnitude == infinity ? code - 1
                                                        : code;
            if (found != expected)
                fail_msg("%s %x: %x, not %x", type, code, found, expected);
        }
    }
}

static void test_halves(void **state)
{
    check_round_trip("e5m2", 0x7c);
    uint32_t in[COUNT], out[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        in[i] = i & 0xff;
    run("ld.global.u16 %h1, [%rd2];\ncvt.rn.f16x2.e4m3x2 %r5, %h1;\n"
        "st.global.u32 [%rd1], %r5;\n",
        in, out);
    assert_int_equal(out[0x38], 0x3c00); /* 1 */
    assert_int_equal(out[0x7e], 0x5f00); /* 448 */
    assert_int_equal(out[0x81], 0x9800); /* -2^-9 */
    assert_int_equal(out[0x7f] & 0x7fff, 0x7fff);
}

static void test_packing(void **state)
{
    int32_t in[COUNT] = {0, 300, -300, 127, -128, 70000, -70000, 255};
    uint32_t out[COUNT];
    static const uint32_t u8[8] = {0x12340500, 0x123405ff, 0x12340500, 0x1234057f,
                                   0x12340500, 0x123405ff, 0x12340500, 0x123405ff};
    static const uint32_t s8[8] = {0x12340500, 0x1234057f, 0x12340580, 0x1234057f,
                                   0x12340580, 0x1234057f, 0x12340580, 0x1234057f};
    static const uint32_t s16[8] = {0x00050000, 0x0005012c, 0x0005fed4, 0x0005007f,
                                    0x0005ff80, 0x00057fff, 0x00058000, 0x000500ff};
    run("ld.global.u32 %r4, [%rd2];\ncvt.pack.sat.u8.s32.b32 %r5, 5, %r4, 0x1234;\n"
        "st.global.u32 [%rd1], %r5;\n",
        in, out);
    assert_memory_equal(out, u8, sizeof(u8));
    run("ld.global.u32 %r4, [%rd2];\ncvt.pack.sat.s8.s32.b32 %r5, 5, %r4, 0x1234;\n"
        "st.global.u32 [%rd1], %r5;\n",
        in, out);
    assert_memory_equal(out, s8, sizeof(s8));
    run("ld.global.u32 %r4, [%rd2];\ncvt.pack.sat.s16.s32 %r5, 5, %r4;\n"
        "st.global.u32 [%rd1], %r5;\n",
        in, out);
    assert_memory_equal(out, s16, sizeof(s16));
}

/* On a pair, an instruction does what it does on each half: out is where it does not. */
static void check_pair(const char *opcode, const char *type, unsigned operands)
{
    uint32_t in[COUNT], out[COUNT];
    char body[1024];
    const char *three = operands == 3 ? ", %r4" : "", *low = operands == 3 ? ", %h1" : "",
               *high = operands == 3 ? ", %h2" : "";
    for (unsigned i = 0; i < COUNT; i++)
        in[i] = (uint32_t)rand() << 16 ^ (uint32_t)rand();
    snprintf(body, sizeof(body),
             ".reg .b16 %%g<6>;\nld.global.u32 %%r4, [%%rd2];\nxor.b32 %%r6, %%r4, 0x83ff7a01;\n"
             "%s.%sx2 %%r5, %%r4, %%r6%s;\nmov.b32 {%%h1, %%h2}, %%r4;\n"
             "mov.b32 {%%g1, %%g2}, %%r6;\n%s.%s %%g3, %%h1, %%g1%s;\n%s.%s %%g4, %%h2, %%g2%s;\n"
             "mov.b32 %%r7, {%%g3, %%g4};\nxor.b32 %%r7, %%r7, %%r5;\n"
             "st.global.u32 [%%rd1], %%r7;\n",
             opcode, type, three, opcode, type, low, opcode, type, high);
    run(body, in, out);
    for (unsigned i = 0; i < COUNT; i++) {
        if (out[i])
            fail_msg("%s.%sx2 of %x: %x differs", opcode, type, in[i], out[i]);
    }
}

static void test_pairs(void **state)
{
    static const char *const types[2] = {"f16", "bf16"};
    for (unsigned i = 0; i < 2; i++) {
        check_pair("min.NaN", types[i], 2);
        check_pair("max.NaN", types[i], 2);
        check_pair("fma.rn.relu", types[i], 3);
    }
    check_pair("add.sat", "f16", 2);
    check_pair("sub.sat", "f16", 2);
    check_pair("mul.sat", "f16", 2);
    check_pair("fma.rn.sat", "f16", 3);
}

/* All threads add to the first words of the output. */
static void test_vector_atomics(void **state)
{
    uint32_t in[COUNT] = {0}, out[COUNT];
    run("sub.u64 %rd4, %rd1, %rd3;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f40000000;\n"
        "red.global.add.v4.f32 [%rd4], {%f1, %f2, %f1, %f2};\n"
        "atom.global.v2.f32.add {%f3, _}, [%rd4+16], {%f2, %f1};\n"
        "mov.u32 %r5, 0x3c000000;\nmov.u32 %r6, 0x00003c00;\n"
        "red.global.max.noftz.v2.f16x2 [%rd4+32], {%r5, %r6};\n",
        in, out);
    static const float sums[6] = {COUNT, 2 * COUNT, COUNT, 2 * COUNT, 2 * COUNT, COUNT};
    assert_memory_equal(out, sums, sizeof(sums));
    assert_int_equal(out[8], 0x3c000000);
    assert_int_equal(out[9], 0x00003c00);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_floats), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_packing),     cmocka_unit_test(test_vector_atomics),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
