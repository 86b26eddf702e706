/* SPDX-License-Identifier: Apache-2.0 */
/* Linking PTX: what stays, what goes, what is renamed, and in which order it comes out. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "link.h"

#define HEADER ".version 9.0\n.target sm_90\n.address_size 64\n"

static char *linked(const char *one, const char *other)
{
    struct fatbin_part parts[] = {{(char *)one, strlen(one)}, {(char *)other, strlen(other)}};
    struct fatbin_code code = {parts, 2};
    struct fatbin_part whole;

    assert_int_equal(fatbin_link(&code, &whole), 0);
    assert_int_equal(strlen(whole.text), whole.size);
    return whole.text;
}

static unsigned times(const char *text, const char *word)
{
    unsigned count = 0;

    while ((text = strstr(text, word))) {
        count++;
        text += strlen(word);
    }
    return count;
}

static void test_one_header(void **state)
{
    char *text =
        linked(HEADER ".visible .entry a() { ret; }", HEADER ".visible .entry b() { ret; }");

    assert_int_equal(times(text, ".version"), 1);
    assert_int_equal(times(text, ".target"), 1);
    assert_int_equal(times(text, ".entry"), 2);
    assert_ptr_equal(strstr(text, ".version"), text);
    free(text);
}

static void test_a_declaration_makes_way(void **state)
{
    char *text = linked(HEADER ".extern .global .align 4 .u32 x;\n.extern .func f(.param .b32 p);\n"
                               ".visible .entry a() { call f, (1); ret; }",
                        HEADER ".visible .global .align 4 .u32 x = 7;\n"
                               ".visible .func f(.param .b32 p) { ret; }");

    assert_null(strstr(text, ".extern"));
    assert_int_equal(times(text, ".u32 x"), 1);
    assert_non_null(strstr(text, "x = 7;"));
    assert_int_equal(times(text, ".visible .func f(.param .b32 p)"), 2);
    assert_true(strstr(text, "f(.param .b32 p) ;") < strstr(text, ".entry"));
    free(text);
}

static void test_an_undefined_symbol_stays_declared_once(void **state)
{
    char *text = linked(HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 f);",
                        HEADER ".extern .func (.param .b32 r) vprintf(.param .b64 f);");

    assert_int_equal(times(text, "vprintf"), 1);
    free(text);
}

/* The software GPU has a device runtime of its own, so none of what calls NVIDIA's driver stays. */
static void test_the_device_runtime_is_left_out(void **state)
{
    const char *runtime = HEADER ".extern .func (.param .b64 r) cnpGetParameterBufferV2();\n"
                                 ".visible .global .align 4 .u32 version = 7;\n"
                                 ".visible .func (.param .b64 r) cudaGetParameterBufferV2() {\n"
                                 ".param .b64 s;\ncall (s), cnpGetParameterBufferV2; ret; }\n"
                                 ".visible .func (.param .b32 r) cudaFree() { ret; }";
    const char *program = HEADER ".extern .func (.param .b64 r) cudaGetParameterBufferV2();\n"
                                 ".visible .entry a() { ret; }";
    char *text = linked(runtime, program);

    assert_int_equal(times(text, "cnp"), 0);
    assert_int_equal(times(text, "cudaFree"), 0);
    assert_int_equal(times(text, "version = 7"), 0);
    assert_int_equal(times(text, ".version"), 1);
    assert_int_equal(times(text, ".extern .func (.param .b64 r) cudaGetParameterBufferV2();"), 1);
    assert_int_equal(times(text, ".entry a()"), 1);
    free(text);
}

static void test_kernels_are_declared_before_they_are_named(void **state)
{
    char *text = linked(HEADER ".extern .entry b(.param .u64 p);\n"
                               ".visible .entry a() { mov.u64 %rd1, b; ret; }",
                        HEADER ".visible .entry b(.param .u64 p) { ret; }");

    assert_int_equal(times(text, ".entry b(.param .u64 p)"), 2);
    assert_true(strstr(text, ".extern .entry b") < strstr(text, ".entry a"));
    free(text);
}

static void test_weak_once(void **state)
{
    char *text = linked(HEADER ".weak .func w() { add; }\n.weak .global .u32 v;",
                        HEADER ".weak .func w() { sub; }\n.weak .global .u32 v;");

    assert_non_null(strstr(text, "add;"));
    assert_null(strstr(text, "sub;"));
    assert_int_equal(times(text, ".u32 v;"), 1);
    free(text);
}

static void test_private_names(void **state)
{
    char *text = linked(HEADER ".global .align 1 .b8 $str[2] = {65, 0};\n"
                               ".visible .entry a() { mov.u64 %rd1, $str; mov.u64 %rd2, $str2; }",
                        HEADER ".global .align 1 .b8 $str[2] = {66, 0};\n"
                               ".visible .entry b() { mov.u64 %rd1, $str; }");

    assert_int_equal(times(text, "$str$part0"), 2);
    assert_int_equal(times(text, "$str$part1"), 2);
    assert_int_equal(times(text, "$str2;"), 1);
    assert_non_null(strstr(text, "$str$part1[2] = {66, 0};"));
    free(text);
}

/* The host asks for a static variable by its name, which nvcc has made unique. */
static void test_private_names_stay_where_they_can(void **state)
{
    char *text = linked(HEADER ".global .u32 one;\n.global .u32 both;\n"
                               ".visible .entry a() { ld.global.u32 %r1, [one]; }",
                        HEADER ".global .u32 both;\n"
                               ".visible .entry b() { ld.global.u32 %r1, [both]; }");

    assert_int_equal(times(text, "one;"), 1);
    assert_non_null(strstr(text, "[one]"));
    assert_int_equal(times(text, "both$part0"), 1);
    assert_int_equal(times(text, "both$part1"), 2);
    free(text);
}

static void test_comments_and_strings_are_left_alone(void **state)
{
    char *text = linked(HEADER "// } x ;\n/* { */ .global .u32 x;\n"
                               ".visible .entry a() { .pragma \"} x;\"; ld.global.u32 %r1, [x]; }",
                        HEADER ".global .u32 x;");

    assert_non_null(strstr(text, "\"} x;\""));
    assert_non_null(strstr(text, "[x$part0]"));
    free(text);
}

static void test_debug_information_goes(void **state)
{
    char *text = linked(HEADER ".file 1 \"a.cu\"\n.section .debug_str { .b8 65, 0 }\n"
                               ".visible .entry a() { ret; }",
                        HEADER);

    assert_null(strstr(text, ".file"));
    assert_null(strstr(text, ".section"));
    assert_non_null(strstr(text, ".entry a"));
    free(text);
}

static void test_text_that_breaks_off(void **state)
{
    static const char whole[] = HEADER ".visible .entry a() { .pragma \"x\\\"\"; /* c */ ret; }";

    for (size_t size = 0; size < sizeof(whole); size++) {
        char *exact = malloc(size + 1);

        memcpy(exact, whole, size);
        exact[size] = '\0';
        free(linked(exact, HEADER));
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_header),
        cmocka_unit_test(test_a_declaration_makes_way),
        cmocka_unit_test(test_an_undefined_symbol_stays_declared_once),
        cmocka_unit_test(test_the_device_runtime_is_left_out),
        cmocka_unit_test(test_kernels_are_declared_before_they_are_named),
        cmocka_unit_test(test_weak_once),
        cmocka_unit_test(test_private_names),
        cmocka_unit_test(test_private_names_stay_where_they_can),
        cmocka_unit_test(test_comments_and_strings_are_left_alone),
        cmocka_unit_test(test_debug_information_goes),
        cmocka_unit_test(test_text_that_breaks_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
