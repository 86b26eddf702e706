/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PTX's syntax offers beyond what compilers write: constant expressions, vectors of registers,
 * functions with parameters in registers. And what is refused: by name if it is PTX, as invalid if
 * it is not.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.6\n.target sm_90\n.address_size 64\n.global .align 16 .b8 temp[64];\n"
#define BEGIN                                                                                  \
    ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;" \
    " .reg .pred %p<3>;\n"
#define OUT "ld.param.u64 %rd1, [p];\n"

/* The word that the kernel stores first. */
static uint32_t run(const char *functions, const char *body)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s\n%s%s\nret;\n}\n", HEAD, functions, BEGIN OUT, body);
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, 64), word;
    void *params[] = {&out};
    assert_int_equal(machine_launch(machine, "k", 1, 1, 0, params), CUDA_SUCCESS);
    word = *out;
    machine_destroy(machine);
    return word;
}

static uint32_t value_of(const char *expression)
{
    char body[256];
    snprintf(body, sizeof(body), "mov.b32 %%r1, %s;\nst.global.b32 [%%rd1], %%r1;", expression);
    return run("", body);
}

static void test_constants(void **state)
{
    assert_int_equal(value_of("(1+2)*3"), 9);
    assert_int_equal(value_of("1+2*3"), 7);
    assert_int_equal(value_of("(1<<3)-1"), 7);
    assert_int_equal(value_of("10 - 3 - 2 * 2"), 3);
    assert_int_equal(value_of("1 << 2 + 1 == 8 && 9 / 3 / 3"), 1);
    assert_int_equal(value_of("-7/2"), (uint32_t)-3);
    assert_int_equal(value_of("-7>>1"), (uint32_t)-4);
    assert_int_equal(value_of("(.u64)-8 / 0x4000000000000000"), 3);
    assert_int_equal(value_of("3 < 2 ? 4 : 5"), 5);
    assert_int_equal(value_of("(-1 < 1) + (-1 < 1U)"), 1);
    assert_int_equal(value_of("2 && 1 || 0"), 1);
    assert_int_equal(value_of("(3 == 3) + (3 != 3) + (2 >= 3) + (2 <= 3)"), 2);
    assert_int_equal(value_of("6 & 3 | 8 ^ 1"), 11);
    assert_int_equal(value_of("WARP_SZ * 2 - 1"), 63);
    assert_int_equal(run("", "mov.f32 %f1, -(1.5 + 2.0) / 2.0;\nst.global.f32 [%rd1], %f1;"),
                     0xbfe00000);
    assert_int_equal(run("", "mov.u64 %rd2, temp + 4 * 2;\nmov.u64 %rd3, temp;\n"
                             "sub.u64 %rd2, %rd2, %rd3;\nst.global.u32 [%rd1], %rd2;"),
                     8);
}

static void test_vectors(void **state)
{
    assert_int_equal(run("", ".reg .v4 .b32 v;\nmov.b32 v.x, 1;\nmov.b32 v.y, 20;\n"
                             "mov.b32 v.b, 300;\nmov.b32 v.a, 4000;\n"
                             "st.global.v4.b32 [temp], v;\n.reg .v4 .b32 %w<2>;\n"
                             "ld.global.v4.b32 %w1, [temp];\nadd.u32 %r1, %w1.x, %w1.g;\n"
                             "add.u32 %r1, %r1, %w1.z;\nadd.u32 %r1, %r1, %w1.w;\n"
                             "st.global.b32 [%rd1], %r1;"),
                     4321);
    assert_int_equal(run("", ".reg .v2 .b16 v;\nmov.b32 v, 0x12345678;\nmov.b32 %r1, {v.y, v.x};\n"
                             "st.global.b32 [%rd1], %r1;"),
                     0x56781234);
    assert_int_equal(run("", ".reg .v4 .u32 v, w;\nmov.v4.u32 v, %ntid;\nmov.v4.u32 w, v;\n"
                             "mov.v4.u32 w, {w.y, w.x, 7, w.w};\n"
                             "mad.lo.u32 %r1, w.x, 100, w.z;\nst.global.b32 [%rd1], %r1;"),
                     107);
}

static void test_register_parameters(void **state)
{
    static const char factorial[] =
        ".func (.reg .u32 rc) fac(.reg .u32 n)\n{\n.reg .u32 n1, m;\n.reg .pred p;\n"
        "setp.lt.u32 p, n, 2;\nmov.u32 rc, 1;\n@p ret;\nsub.u32 n1, n, 1;\n"
        "call (m), fac, (n1);\nmul.lo.u32 rc, m, n;\n}";
    assert_int_equal(run(factorial, "call (%r1), fac, (6);\nst.global.b32 [%rd1], %r1;"), 720);
    assert_int_equal(run(factorial, "mov.u64 %rd2, fac;\n"
                                    "pr: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
                                    "mov.u32 %r2, 5;\ncall (%r1), %rd2, (%r2), pr;\n"
                                    "st.global.b32 [%rd1], %r1;"),
                     120);
    /* Registers and .param variables pass for each other, on either side. */
    assert_int_equal(run(factorial, ".param .b32 x;\n.param .b32 y;\nst.param.b32 [x], 4;\n"
                                    "call (y), fac, (x);\nld.param.b32 %r1, [y];\n"
                                    "st.global.b32 [%rd1], %r1;"),
                     24);
    assert_int_equal(
        run(".func (.param .b32 r) next(.param .f32 a, .param .b64 b)\n{\n"
            ".reg .f32 x;\n.reg .b64 y;\n.reg .b32 z;\nld.param.f32 x, [a];\n"
            "ld.param.b64 y, [b];\ncvt.rzi.u32.f32 z, x;\n"
            "mad.lo.u32 z, z, 10, 1;\nst.param.b32 [r], z;\nret;\n}",
            "setp.eq.u32 %p1, 0, 0;\nmov.u32 %r1, 5;\n@!%p1 call (%r1), next, (1.5, 3);\n"
            "@%p1 call (%r2), next, (2.5, %rd1);\nadd.u32 %r1, %r1, %r2;\n"
            "st.global.b32 [%rd1], %r1;"),
        26);
    assert_int_equal(run(".func (.reg .b32 r) sum(.reg .v4 .b32 v)\n{\nadd.u32 r, v.x, v.y;\n"
                         "add.u32 r, r, v.z;\nadd.u32 r, r, v.w;\nret;\n}",
                         ".reg .v4 .b32 v;\nmov.v4.b32 v, {1, 2, 3, 4};\ncall (%r1), sum, (v);\n"
                         "st.global.b32 [%rd1], %r1;"),
                     10);
}

static void test_other_names(void **state)
{
    static const char twice[] = ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 x;\n"
                                "ld.param.b32 x, [a];\nshl.b32 x, x, 1;\nst.param.b32 [r], x;\n"
                                "ret;\n}\n.func (.param .b32 r) same(.param .b32 a);\n"
                                ".alias same, twice;\n";
    assert_int_equal(run(twice, "call (%r1), same, (21);\nst.global.b32 [%rd1], %r1;"), 42);
    assert_int_equal(run(twice, "mov.u64 %rd2, same;\ntg: .calltargets twice, same;\n"
                                "call (%r1), %rd2, (7), tg;\nst.global.b32 [%rd1], %r1;"),
                     14);
    assert_int_equal(run("", "mov.u32 %r1, 17 % 5 + 100 % 3;\nst.global.b32 [%rd1], %r1;"), 3);
}

static void expect(const char *functions, const char *body, CUresult expected, const char *words)
{
    char text[4096], log[1024] = "";
    CUresult result = CUDA_SUCCESS;
    snprintf(text, sizeof(text), "%s%s\n%s%s\nret;\n}\n", HEAD, functions, BEGIN, body);
    struct sg_module *module = sg_module_load(text, strlen(text), 90, log, sizeof(log), &result);
    if (module || result != expected || !strstr(log, words))
        fail_msg("%s: %d: %s\ninstead of %s", body, result, log, words);
}

static void test_refused(void **state)
{
    expect("", "ld.global.u32 %r1, temp[4];", CUDA_ERROR_NOT_SUPPORTED,
           "does not run variables with an index in brackets");
    expect("", "vadd.u32.u32.u32 %r1, %r1.b0, %r2.h1;", CUDA_ERROR_NOT_SUPPORTED,
           "does not run parts of registers (vadd.u32.u32.u32)");
    expect("", "vset2.u32.u32.lt %r1.h10, %r1, %r2, %r2;", CUDA_ERROR_NOT_SUPPORTED,
           "parts of registers (vset2.u32.u32.lt)");
    expect("", "vmad.s32.s32.s32 %r1, %r1, %r2, -%r2;", CUDA_ERROR_NOT_SUPPORTED,
           "negated operands (vmad.s32.s32.s32)");
    expect("", "tex.1d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, %rd2, {%f1}];",
           CUDA_ERROR_NOT_SUPPORTED, "tex.1d.v4.f32.f32");
    expect("", "tg: .calltargets %r1;", CUDA_ERROR_INVALID_PTX, "needs functions");
    expect(".func f() { ret; } .func g() { ret; } .alias f, g;", "", CUDA_ERROR_INVALID_PTX,
           "no body of its own");
    expect(".func f(); .alias f, temp;", "", CUDA_ERROR_INVALID_PTX, "two functions");
    expect("", "foo.u32 %r1;", CUDA_ERROR_INVALID_PTX, "not an instruction of PTX");
    expect("", "mov.u32 %r1, %nope;", CUDA_ERROR_INVALID_PTX, "%nope is not declared");
    expect("", "ld.global.u32 %r1, [%rd1-4];", CUDA_ERROR_INVALID_PTX, "expected ']'");
    expect("", "mov.f32 %f1, -0f3f800000;", CUDA_ERROR_INVALID_PTX, "expected an integer");
    expect("", "mov.u32 %r1, 1 / 0;", CUDA_ERROR_INVALID_PTX, "division by zero");
    expect("", ".reg .v2 .b32 v; mov.u32 %r1, v.z;", CUDA_ERROR_INVALID_PTX,
           "'.z' is not one of a vector's registers");
    expect("", "red.acq_rel.gpu.global.add.u32 [%rd1], 1;", CUDA_ERROR_INVALID_PTX, "memory order");
    expect("", "red.acquire.gpu.global.add.u32 [%rd1], 1;", CUDA_ERROR_INVALID_PTX, "memory order");
    expect("", "ld.release.gpu.global.u32 %r1, [%rd1];", CUDA_ERROR_INVALID_PTX, "memory order");
    expect("", "st.acquire.gpu.global.u32 [%rd1], 1;", CUDA_ERROR_INVALID_PTX, "memory order");
    expect("", ".reg .v8 .b32 v;", CUDA_ERROR_INVALID_PTX, "2 or 4");
    expect("", ".reg .v2 .pred v;", CUDA_ERROR_INVALID_PTX, "2 or 4");
    expect(".func f(.reg .pred a) { ret; }", "", CUDA_ERROR_INVALID_PTX, "cannot be of this type");
    expect(".func f(.reg .b32 a) { ret; }", "call f, (%r1, %r2);", CUDA_ERROR_INVALID_PTX,
           "more arguments");
    expect(".visible .entry e(.reg .b32 a) { ret; }", "", CUDA_ERROR_INVALID_PTX, "must be .param");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants), cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_register_parameters), cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
