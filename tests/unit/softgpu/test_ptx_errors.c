/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that is not a program: every mistake is an error with a line, and none costs more than the
 * text is long.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The build without sanitizers is what notices a time that grows with the square. */
#ifdef __SANITIZE_ADDRESS__
#define MANY 300u
#else
#define MANY 3000u
#endif

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL(body)                                                                    \
    HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred " \
         "%p<2>;\n" body "\n}\n"

static CUresult load(const char *text, size_t size, char *log, size_t log_size)
{
    CUresult result = CUDA_SUCCESS;
    /* Memory of exactly its size, so that reading beyond shows. */
    char *copy = malloc(size + 1);
    memcpy(copy, text, size);
    struct sg_module *module = sg_module_load(copy, size, 90, log, log_size, &result);
    free(copy);
    sg_module_unref(module);
    return module ? CUDA_SUCCESS : result;
}

static void expect(const char *text, CUresult expected, const char *words)
{
    char log[512];
    CUresult result = load(text, strlen(text), log, sizeof(log));
    if (result != expected || !strstr(log, words))
        fail_msg("%d, \"%s\": not %d with \"%s\" for: %s", result, log, expected, words, text);
}

static void test_sentences(void **state)
{
    expect("", CUDA_ERROR_INVALID_PTX, "not PTX");
    expect("\177ELF", CUDA_ERROR_INVALID_PTX, "line 1");
    expect(".version 8.0\n.target sm_100\n", CUDA_ERROR_NO_BINARY_FOR_GPU,
           "compile for compute_90");
    expect(KERNEL("frob.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX, "line 9, in k: frob.u32");
    expect(KERNEL("st.bulk.weak.shared::cta [%rd1], %rd1, 0;"), CUDA_ERROR_NOT_SUPPORTED,
           "st.bulk.weak.shared::cta");
    expect(KERNEL("add.u32 %r1, %r9, 1;"), CUDA_ERROR_INVALID_PTX, "%r9");
    expect(KERNEL("add.u32 %r1, %r2;"), CUDA_ERROR_INVALID_PTX, "number of operands");
    expect(KERNEL("add.u32 %r1, %r2"), CUDA_ERROR_INVALID_PTX, "expected ';'");
    expect(KERNEL("bra NOWHERE;"), CUDA_ERROR_INVALID_PTX, "'NOWHERE' is not declared");
    expect(KERNEL("mov.u64 %r1, %rd1;"), CUDA_ERROR_INVALID_PTX, "too narrow");
    expect(KERNEL("@%r1 ret;"), CUDA_ERROR_INVALID_PTX, "predicate");
    expect(KERNEL("ld.param.u64 %rd1, [p+8];"), CUDA_ERROR_INVALID_PTX, "beyond the parameters");
    expect(KERNEL("ld.param.u64 %rd1, [p+4];"), CUDA_ERROR_INVALID_PTX, "beyond the parameters");
    expect(KERNEL("ld.param.u64 %rd1, [p+-8];"), CUDA_ERROR_INVALID_PTX, "beyond the parameters");
    expect(KERNEL("proto: .callprototype () ;"), CUDA_ERROR_INVALID_PTX, "expected the name");
    expect(HEAD ".entry k() { p: .callprototype () 2b32", CUDA_ERROR_INVALID_PTX,
           "'2b32' is not a number");
    expect(KERNEL("call missing;"), CUDA_ERROR_INVALID_PTX, "not declared");
    expect(KERNEL("call k;"), CUDA_ERROR_INVALID_PTX, "a kernel cannot be called");
    expect(KERNEL(".reg .b32 %r<4>; L: L: ret;"), CUDA_ERROR_INVALID_PTX, "declared twice");
    expect(HEAD ".extern .func f;\n.entry k() { call f; }", CUDA_ERROR_NOT_FOUND,
           "declared but not defined");
    expect(HEAD ".global .b8 x[2] = {1, 2, 3};", CUDA_ERROR_INVALID_PTX, "more initial values");
    expect(HEAD ".global .b32 x = nothing;", CUDA_ERROR_INVALID_PTX, "not declared");
    expect(HEAD ".global .align 3 .b32 x;", CUDA_ERROR_INVALID_PTX, "power of two");
}

static void test_sizes(void **state)
{
    expect(KERNEL(".reg .b64 %big<2000000000>; mov.b64 %big1999999999, 1;"), CUDA_SUCCESS, "");
    expect(HEAD ".global .b8 x[99999999999999999];", CUDA_ERROR_INVALID_PTX, "too large");
    expect(HEAD ".global .b64 x[4294967296][4294967296];", CUDA_ERROR_INVALID_PTX, "too large");
    expect(KERNEL(".local .b8 x[1073741824];"), CUDA_ERROR_INVALID_PTX, "too large");
    expect(KERNEL(".shared .b8 x[1073741824];"), CUDA_ERROR_INVALID_PTX, "shared");
}

/* Brackets of every kind, as deep as the text allows. */
static void test_depth(void **state)
{
    static const char *const starts[] = {KERNEL("{"), HEAD ".global .b32 x = ",
                                         HEAD ".global .b32 x[4] = ", KERNEL("mov.u32 %r1, ")};
    static const char brackets[] = "{({-";
    for (unsigned i = 0; i < 4; i++) {
        size_t size = 100000, head = strlen(starts[i]) - (i == 0 || i == 3 ? 3 : 0);
        char *text = malloc(size);
        char log[512];
        memset(text, brackets[i], size);
        memcpy(text, starts[i], head);
        assert_int_not_equal(load(text, size, log, sizeof(log)), CUDA_SUCCESS);
        free(text);
    }
}

/* A text of `count` pieces, each made with its number, behind what `first` says. */
static char *repeat(const char *first, const char *format, unsigned count, const char *last)
{
    size_t capacity = strlen(first) + strlen(last) + count * (strlen(format) + 20) + 1, used;
    char *text = malloc(capacity);
    used = (size_t)snprintf(text, capacity, "%s", first);
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, capacity - used, format, i, i);
    snprintf(text + used, capacity - used, "%s", last);
    return text;
}

/* What would take minutes if each thing were compared with all others: the test's time limit is
 * what notices. */
static void test_many(void **state)
{
    char log[512];
    char *constants = repeat(HEAD ".entry k()\n{\n.reg .b32 %r<2>;\n", "mov.u32 %%r1, %u;\n",
                             100 * MANY, "ret;\n}\n");
    char *function = repeat(HEAD ".func f()\n{\n.reg .b32 %r<2>;\n", "add.u32 %%r1, %%r1, 1;\n",
                            MANY, "ret;\n}\n");
    char *kernels = repeat(function, ".entry k%u()\n{\ncall f;\nret;\n}\n", MANY, "");
    assert_int_equal(load(constants, strlen(constants), log, sizeof(log)), CUDA_SUCCESS);
    assert_int_equal(load(kernels, strlen(kernels), log, sizeof(log)), CUDA_SUCCESS);
    free(constants);
    free(function);
    free(kernels);
}

/* Functions that call each other in a circle, with no way out but the stack's end. */
static void test_endless_recursion(void **state)
{
    struct machine *machine = machine_create_from(
        HEAD
        ".func f(.param .b32 x);\n.func f(.param .b32 x)\n{\n.param .b32 y;\nst.param.b32 [y], 1;\n"
        "call f, (y);\nret;\n}\n.entry k() { .param .b32 z; st.param.b32 [z], 1; call f, (z); ret; "
        "}\n");
    assert_int_equal(machine_launch(machine, "k", 1, 32, 0, NULL), CUDA_ERROR_HARDWARE_STACK_ERROR);
    machine_destroy(machine);
}

static void test_bad_jumps(void **state)
{
    struct machine *machine = machine_create_from(
        HEAD ".entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\n"
             "proto: .callprototype _ ();\ncall %rd1, (), proto;\nret;\n}\n"
             ".entry table(.param .u32 p)\n{\n.reg .b32 %r<2>;\nld.param.u32 %r1, [p];\nT: "
             ".branchtargets A, B;\n"
             "brx.idx %r1, T;\nA: ret;\nB: ret;\n}\n.entry halt() { trap; }\n"
             ".entry apart() { .reg .b32 %r<2>; .reg .pred %p; mov.u32 %r1, %tid.x; setp.lt.u32 "
             "%p, %r1, 32;\n"
             "@%p bar.sync 1, 64; ret; }\n");
    uint64_t pointers[] = {0, 1, 0xf000000000000000, 0xf000000000000001, UINT64_MAX};
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(machine_launch(machine, "k", 1, 32, 0, (void *[]){&pointers[i]}),
                         CUDA_ERROR_INVALID_PC);
    uint32_t index = 2;
    assert_int_equal(machine_launch(machine, "table", 1, 32, 0, (void *[]){&index}),
                     CUDA_ERROR_ILLEGAL_INSTRUCTION);
    index = 1;
    assert_int_equal(machine_launch(machine, "table", 1, 32, 0, (void *[]){&index}), CUDA_SUCCESS);
    assert_int_equal(machine_launch(machine, "halt", 1, 1, 0, NULL), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(machine_launch(machine, "apart", 1, 64, 0, NULL), CUDA_ERROR_LAUNCH_FAILED);
    machine_destroy(machine);
}

/* Every prefix of a real program, and the program with one byte changed at many places. */
static void test_damaged(void **state)
{
    char log[512];
    size_t size;
    char *text = machine_text("basics.ptx", &size);
    uint64_t seed = 1;
    for (size_t length = 0; length < size; length += 97)
        load(text, length, log, sizeof(log));
    for (unsigned i = 0; i < 400; i++) {
        size_t at = unit_random(&seed) % size;
        char saved = text[at];
        text[at] = (char)unit_random(&seed);
        load(text, size, log, sizeof(log));
        text[at] = saved;
    }
    assert_int_equal(load(text, size, log, sizeof(log)), CUDA_SUCCESS);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_depth),     cmocka_unit_test(test_endless_recursion),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_bad_jumps),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
