/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software GPU refuses code that it does not run when the module is loaded, with a message that
 * names opcode, line and kernel. That is all that the coverage document lists as refused.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#include "refused.h"

static void expect_refusal(const char *text, const char *words)
{
    char log[1024] = "";
    CUresult result = CUDA_SUCCESS;
    struct sg_module *module = sg_module_load(text, strlen(text), 90, log, sizeof(log), &result);
    if (module || result != CUDA_ERROR_NOT_SUPPORTED || !strstr(log, words))
        fail_msg("%d: %s\ninstead of %s", result, log, words);
}

static void test_opcodes(void **state)
{
    const struct refused *one;
    unsigned count = 0;
    for (; (one = refused_at(count)) != NULL; count++) {
        char text[2048], words[256];
        snprintf(text, sizeof(text),
                 ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
                 ".reg .b32 %%r<10>; .reg .b64 %%rd<10>; .reg .f32 %%f<10>; .reg .b16 %%h<10>;"
                 " .reg .pred %%p<4>; .shared .align 128 .b8 box[128];\n%s %s;\nret;\n}\n",
                 one->opcode, one->operands);
        snprintf(words, sizeof(words), "PTX line 7, in k: %.60s", one->opcode);
        expect_refusal(text, words);
    }
    assert_true(count > 15);
}

/* What a kernel calls is refused with both names. */
static void test_functions(void **state)
{
    expect_refusal(".version 8.6\n.target sm_90a\n.address_size 64\n"
                   ".func f()\n{\nmultimem.st.relaxed.sys.global.f32 [0], 0f00000000;\nret;\n}\n"
                   ".visible .entry k()\n{\ncall f, ();\nret;\n}\n",
                   "PTX line 6, in f of kernel k: multimem.st.relaxed.sys.global.f32");
}

static void test_launches(void **state)
{
    expect_refusal(
        ".version 8.6\n.target sm_80\n.address_size 64\n"
        ".extern .func (.param .b64 r) __cudaCDP2GetParameterBuffer"
        "(.param .b64 a, .param .b64 b);\n"
        ".visible .entry k()\n{\n.param .b64 r; .param .b64 a;\n"
        "call.uni (r), __cudaCDP2GetParameterBuffer, (a, a);\nret;\n}\n",
        "PTX line 8, in k: call.uni: __cudaCDP2GetParameterBuffer: the software GPU lacks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opcodes),
                                       cmocka_unit_test(test_functions),
                                       cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
