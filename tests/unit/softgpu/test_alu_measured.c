/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as an H100 gave them to random kernels, one statement and one input each. They are where
 * the PTX ISA says little, and where the software GPU was once wrong.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define INPUTS 4

/* %dN, %rN and %hN begin as the bits of input N, %pN says whether it is odd; %d9 is the result. */
struct measured {
    const char *statements;
    uint64_t inputs[INPUTS];
    uint64_t result;
};

#define NAN64 0x7fffffffffffffff
#define NARROWED "cvt.s64.s32 %d9, %r9;"
#define PREDICATES "selp.b64 %d9, 2, 0, %p0; selp.b64 %d8, 1, 0, %p1; or.b64 %d9, %d9, %d8;"

static const struct measured measured[] = {
    /* What is not a number has the top bit alone when it comes from an f64. */
    {"cvt.rmi.sat.u8.f64 %r9, %d0;" NARROWED, {NAN64}, 0x80},
    {"cvt.rzi.s8.f64 %r9, %d0;" NARROWED, {NAN64}, 0xffffffffffffff80},
    {"cvt.rzi.u16.f64 %r9, %d0;" NARROWED, {NAN64}, 0x8000},
    {"cvt.rni.sat.s16.f64 %r9, %d0;" NARROWED, {NAN64}, 0xffffffffffff8000},
    {"cvt.rni.u8.f32 %r9, %r0;" NARROWED, {0x7fffffff}, 0},

    /* Zero is a normal number. */
    {"testp.normal.f64 %p0, %d0; selp.b64 %d9, 1, 0, %p0;", {0}, 1},
    {"testp.normal.f64 %p0, %d0; selp.b64 %d9, 1, 0, %p0;", {1ull << 63}, 1},
    {"testp.normal.f64 %p0, %d0; selp.b64 %d9, 1, 0, %p0;", {1}, 0},
    {"testp.normal.f32 %p0, %r0; selp.b64 %d9, 1, 0, %p0;", {0x80000000}, 1},
    {"testp.normal.f32 %p0, %r0; selp.b64 %d9, 1, 0, %p0;", {0x80000001}, 0},

    /* Fields of 64 bits: position and length count as a whole. */
    {"bfe.s64 %d9, %d0, %r1, %r2;", {0xbcd64bd73cc5a26c, 0x14, 0xff0d000f}, 0xfffffbcd64bd73cc},
    {"bfe.s64 %d9, %d0, %r1, %r2;", {0x3ce3f722bc2ba8d8, 0x3f000000, 0x626285a7}, 0},
    {"bfe.s64 %d9, %d0, %r1, %r2;", {0xbd2aec592b1ac4cc, 0x816b772a, 0xff0000bd}, UINT64_MAX},
    {"bfe.s64 %d9, %d0, %r1, %r2;", {1ull << 63, 0, 0xacf1a220}, 1ull << 63},
    {"bfe.u64 %d9, %d0, %r1, %r2;", {0x3058b1f280, 0x1c, 0x3fe00000}, 0x305},
    {"bfe.u64 %d9, %d0, %r1, %r2;", {0x7f8000007f7fffff, 0x7f800000, 0x3df3bcdb}, 0},
    {"bfi.b64 %d9, %d0, %d1, %r2, %r3;",
     {0x3db84ad3bcfe6b99, 0x3f864a833ce20a4e, 0xc8df7914, 0xbd0bcc02},
     0x3f864a833ce20a4e},
    {"bfi.b64 %d9, %d0, %d1, %r2, %r3;",
     {0x5611a20fdb77f65f, 0x3cc343103d36e60d, 0x2f, 0x7fc00000},
     0xfb2fc3103d36e60d},

    /* The offset without a positive counterpart. */
    {"fns.b32 %r9, %r0, 30, %r1;" NARROWED, {0xbc41d752, 0x80000000}, 0},

    /* .ftz is about f32: a half below the normal ones stays, and is rounded as it should. */
    {"cvt.rz.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {0xb30665c0}, 0x8000},
    {"cvt.rz.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {0x33671dc2}, 0},

    {"cvt.rp.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {1}, 1},
    {"cvt.rm.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {1}, 0},
    {"cvt.rm.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {0x80000001}, 0x8001},
    {"cvt.rp.ftz.f16.f32 %h9, %r0; cvt.u64.u16 %d9, %h9;", {0x80000000}, 0x8000},

    /* Where a NaN becomes the one NaN of its type, and where its bits stay. */
    {"neg.f16x2 %r9, %r0;" NARROWED, {0xffffff3e}, 0x7fff7fff},
    {"abs.f16x2 %r9, %r0;" NARROWED, {0xd6b67d52}, 0x56b67fff},
    {"abs.f16 %h9, %h0; cvt.u64.u16 %d9, %h9;", {0x7df8}, 0x7fff},
    {"neg.f16 %h9, %h0; cvt.u64.u16 %d9, %h9;", {0xff66}, 0x7fff},
    {"neg.ftz.f16 %h9, %h0; cvt.u64.u16 %d9, %h9;", {0x7ee5}, 0x7fff},
    {"cvt.f16.f16 %h9, %h0; cvt.u64.u16 %d9, %h9;", {0x7ff0}, 0x7fff},
    {"cvt.bf16.bf16 %h9, %h0; cvt.u64.u16 %d9, %h9;", {0xff81}, 0x7fff},
    {"abs.ftz.f32 %r9, %r0;" NARROWED, {0xffc00000}, 0x7fffffff},
    {"neg.ftz.f32 %r9, %r0;" NARROWED, {0x7ff00000}, 0x7fffffff},
    {"neg.f64 %d9, %d0;", {0x7fffffff7fffffff}, 0x7fffffff7fffffff},
    {"neg.f64 %d9, %d0;", {0xfff8000000000000}, 0xfff8000000000000},
    {"abs.f64 %d9, %d0;", {0xffffffffffffffff}, 0xffffffffffffffff},
    {"cvt.rn.bf16.f64 %h9, %d0; cvt.u64.u16 %d9, %h9;", {0xffffffffffffffff}, 0xffff},
    {"cvt.rn.f16.f64 %h9, %d0; cvt.u64.u16 %d9, %h9;", {0xfff8000000000000}, 0xfe00},
    {"cvt.rn.tf32.f32 %r9, %r0;" NARROWED, {0x7fffffff}, 0x7fffe000},
    {"abs.f32 %r9, %r0;" NARROWED, {0x7f830019}, 0x7fffffff},
    {"cvt.rp.bf16.f64 %h9, %d0; cvt.u64.u16 %d9, %h9;", {0xfff8000000000000}, 0xffc0},
    {"cvt.rp.f16.f64 %h9, %d0; cvt.u64.u16 %d9, %h9;", {0xffffffffffffffff}, 0xffff},
    {"cvt.rp.f16.f64 %h9, %d0; cvt.u64.u16 %d9, %h9;", {0xfffd980000000000}, 0xff66},
    /* Of several NaNs the second factor counts first, then the summand. */
    {"fma.rn.f64 %d9, %d0, %d1, %d2;",
     {0x7ff8111100000001, 0x7ff0333300000003, 0xfff8222200000002},
     0x7ff8333300000003},
    {"fma.rn.f64 %d9, %d0, %d1, %d2;",
     {0x7ff8111100000001, 0, 0xfff8222200000002},
     0xfff8222200000002},
    {"mul.rn.f64 %d9, %d0, %d1;", {0x7ff8111100000001, 0xfff0444400000004}, 0xfff8444400000004},
    {"add.rn.f64 %d9, %d0, %d1;", {0x7ff8111100000001, 0xfff8222200000002}, 0xfff8222200000002},
    {"sub.rn.f64 %d9, %d0, %d1;", {0xfff8222200000002, 0x7ff8111100000001}, 0x7ff8111100000001},
    {"cvt.rz.relu.tf32.f32 %r9, %r0;" NARROWED, {0x7fc00000}, 0x7fffe000},

    /* The predicates of two halves may be the guard, or what they are combined with. */
    {"setp.gt.xor.bf16x2 %p0|%p1, %r2, %r3, %p0;" PREDICATES, {1, 1, 0x1a, 0x7fc00000}, 1},
    {"@%p0 setp.ne.f16x2 %p0|%p1, %r2, %r3;" PREDICATES, {1, 0, 0x3c003c00, 0x40003c00}, 1},
    {"setp.leu.and.f16x2 %p0|%p1, %r2, %r3, !%p0;" PREDICATES, {1, 1, 0, 0xfffffffc}, 0},
};
#define COUNT (sizeof(measured) / sizeof(measured[0]))

static size_t write_kernel(char *text, size_t size, unsigned number)
{
    size_t length = (size_t)snprintf(
        text, size,
        ".visible .entry k%u(.param .u64 out, .param .u64 in)\n{\n.reg .b64 %%d<10>, %%out, %%in;\n"
        ".reg .b32 %%r<10>; .reg .b16 %%h<10>; .reg .pred %%p<%u>;\n"
        "ld.param.u64 %%out, [out];\nld.param.u64 %%in, [in];\n",
        number, INPUTS);
    for (unsigned i = 0; i < INPUTS; i++)
        length += (size_t)snprintf(text + length, size - length,
                                   "ld.global.b64 %%d%u, [%%in+%u];\ncvt.u32.u64 %%r%u, "
                                   "%%d%u;\ncvt.u16.u32 %%h%u, %%r%u;\n"
                                   "and.b32 %%r9, %%r%u, 1;\nsetp.ne.u32 %%p%u, %%r9, 0;\n",
                                   i, 8 * i, i, i, i, i, i, i);
    return length + (size_t)snprintf(text + length, size - length,
                                     "%s\nst.global.b64 [%%out], %%d9;\nret;\n}\n",
                                     measured[number].statements);
}

static struct machine *load_kernels(void)
{
    static char text[COUNT * 2048];
    size_t length =
        (size_t)snprintf(text, sizeof(text), ".version 8.3\n.target sm_90\n.address_size 64\n");
    for (unsigned i = 0; i < COUNT; i++)
        length += write_kernel(text + length, sizeof(text) - length, i);
    return machine_create_from(text);
}

static void check(struct machine *machine, unsigned number)
{
    const struct measured *one = &measured[number];
    uint64_t *memory = machine_memory(machine, (1 + INPUTS) * sizeof(uint64_t)), *in = memory + 1;
    void *params[] = {&memory, &in};
    char name[16];
    memcpy(in, one->inputs, sizeof(one->inputs));
    snprintf(name, sizeof(name), "k%u", number);
    assert_int_equal(machine_launch(machine, name, 1, 1, 0, params), CUDA_SUCCESS);
    if (*memory != one->result)
        fail_msg("%s gives %#llx instead of %#llx", one->statements, (unsigned long long)*memory,
                 (unsigned long long)one->result);
}

static void test_results(void **state)
{
    struct machine *machine = load_kernels();
    for (unsigned i = 0; i < COUNT; i++)
        check(machine, i);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
