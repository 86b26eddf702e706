/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector access is one access for each lane: while a block writes vectors of equal elements, no
 * other block ever reads two that differ. In every form, type, and arrangement of the lanes.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.4\n.target sm_90\n.address_size 64\n"
/* A sanitizer finds in a few rounds what it finds at all, and its code is slow to be torn. */
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 200
#else
#define ROUNDS 4000
#endif

struct vector {
    const char *suffix; /* of the instruction */
    const char *type;   /* of the registers */
    const char *list;
    unsigned width;
    unsigned size; /* of all elements */
};

static const struct vector vectors[] = {
    {"v2.b8", "b16", "{%e0, %e1}", 2, 2},  {"v4.b8", "b16", "{%e0, %e1, %e2, %e3}", 4, 4},
    {"v2.b16", "b16", "{%e0, %e1}", 2, 4}, {"v4.b16", "b16", "{%e0, %e1, %e2, %e3}", 4, 8},
    {"v2.b32", "b32", "{%e0, %e1}", 2, 8}, {"v4.b32", "b32", "{%e0, %e1, %e2, %e3}", 4, 16},
    {"v2.f32", "f32", "{%e0, %e1}", 2, 8}, {"v2.b64", "b64", "{%e0, %e1}", 2, 16},
    {"b128", "b64", "%q", 2, 16},
};

/* How the writer and the reader access. */
static const char *const forms[][2] = {
    {".global", ".global"},
    {"", ""},
    {".volatile.global", ".volatile.global"},
    {".relaxed.gpu.global", ".relaxed.gpu.global"},
    {".release.gpu.global", ".acquire.gpu.global"},
    {".relaxed.sys", ".acquire.cta"},
};

static struct machine *make(const struct vector *vector, const char *const form[2])
{
    char text[4096], compare[256] = "", fill[256] = "";
    bool is_wide = strcmp(vector->suffix, "b128") == 0;
    for (unsigned i = 0; i < vector->width; i++) {
        bool is_16 = strcmp(vector->type, "b16") == 0, is_64 = strcmp(vector->type, "b64") == 0;
        snprintf(fill + strlen(fill), sizeof(fill) - strlen(fill), "%s %%e%u, %%round;\n",
                 is_16   ? "cvt.u16.u32"
                 : is_64 ? "cvt.u64.u32"
                         : "mov.b32",
                 i);
        if (i)
            snprintf(compare + strlen(compare), sizeof(compare) - strlen(compare),
                     "setp.ne.%c%s %%p2, %%e0, %%e%u;\n@%%p2 add.u32 %%torn, %%torn, 1;\n",
                     vector->type[0], vector->type + 1, i);
    }
    snprintf(text, sizeof(text),
             HEAD ".visible .entry torn(.param .u64 place, .param .u64 torn, .param .u32 step,"
                  " .param .u32 lanes)\n{\n.reg .b32 %%round, %%torn, %%r<5>;\n.reg .b64 %%d<4>;\n"
                  ".reg .%s %%e<4>;\n%s.reg .pred %%p<3>;\n"
                  "ld.param.u64 %%d1, [place];\nld.param.u64 %%d2, [torn];\n"
                  "ld.param.u32 %%r1, [step];\nld.param.u32 %%r2, [lanes];\n"
                  "mov.u32 %%r3, %%tid.x;\nsetp.ge.u32 %%p1, %%r3, %%r2;\n@%%p1 exit;\n"
                  "mad.wide.u32 %%d1, %%r3, %%r1, %%d1;\nmov.u32 %%r4, %%ctaid.x;\n"
                  "mov.u32 %%round, 1;\nmov.u32 %%torn, 0;\nsetp.eq.u32 %%p1, %%r4, 0;\n"
                  "@%%p1 bra writer;\n"
                  "reader:\nld%s.%s %s, [%%d1];\n%s%s"
                  "add.u32 %%round, %%round, 1;\nsetp.lt.u32 %%p1, %%round, %u;\n"
                  "@%%p1 bra reader;\nred.global.add.u32 [%%d2], %%torn;\nexit;\n"
                  "writer:\n%s%sst%s.%s [%%d1], %s;\n"
                  "add.u32 %%round, %%round, 1;\nsetp.lt.u32 %%p1, %%round, %u;\n"
                  "@%%p1 bra writer;\nexit;\n}\n",
             vector->type, is_wide ? ".reg .b128 %q;\n" : "", form[1], vector->suffix, vector->list,
             is_wide ? "mov.b128 {%e0, %e1}, %q;\n" : "", compare, ROUNDS, fill,
             is_wide ? "mov.b128 %q, {%e0, %e1};\n" : "", form[0], vector->suffix, vector->list,
             ROUNDS);
    return machine_create_from(text);
}

static void check(struct machine *machine, const struct vector *vector, const char *form,
                  uint32_t step, uint32_t lanes)
{
    unsigned char *place = machine_memory(machine, 32 * 64);
    uint32_t *torn = machine_memory(machine, 4);
    void *arguments[] = {&place, &torn, &step, &lanes};
    CUresult result = machine_launch(machine, "torn", 2, 32, 0, arguments);
    if (result != CUDA_SUCCESS || *torn != 0)
        fail_msg("%s%s, %u lanes %u bytes apart: %d %s, %u torn", form, vector->suffix, lanes, step,
                 result, machine->message, *torn);
}

static void test_vectors(void **state)
{
    for (unsigned v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
        for (unsigned f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
            struct machine *machine = make(&vectors[v], forms[f]);
            check(machine, &vectors[v], forms[f][0], vectors[v].size, 32);
            check(machine, &vectors[v], forms[f][0], vectors[v].size, 21);
            check(machine, &vectors[v], forms[f][0], 0, 32);
            check(machine, &vectors[v], forms[f][0], 64, 32);
            machine_destroy(machine);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
