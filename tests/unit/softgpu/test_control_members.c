/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halves of a warp that name different members at one instruction: each half is on its own.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

/* %r1 is the lane, %r2 its members, %r3 ten times the lane; the result goes into %r4. */
static const char frame[] = ".version 8.6\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k(.param .u64 out)\n{\n"
                            ".reg .b32 %%r<8>; .reg .b64 %%rd<4>; .reg .pred %%p<4>;\n"
                            "ld.param.u64 %%rd1, [out];\nmov.u32 %%r1, %%laneid;\n"
                            "mul.wide.u32 %%rd2, %%r1, 4;\nadd.u64 %%rd1, %%rd1, %%rd2;\n"
                            "setp.lt.u32 %%p1, %%r1, 16;\n"
                            "selp.b32 %%r2, 0xffff, 0xffff0000, %%p1;\n"
                            "mul.lo.u32 %%r3, %%r1, 10;\nsetp.gt.u32 %%p2, %%r1, 5;\n"
                            "%s\nst.global.u32 [%%rd1], %%r4;\nret;\n}\n";

/* What the lanes of each half get; at the end both halves have gone on. */
static void check(const char *body, uint32_t low, uint32_t high)
{
    char text[2048];
    snprintf(text, sizeof(text), frame, body);
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, 32 * sizeof(*out));
    if (machine_launch(machine, "k", 1, 32, 0, (void *[]){&out}) != CUDA_SUCCESS)
        fail_msg("%s", machine->message);
    for (unsigned lane = 0; lane < 32; lane++) {
        if (out[lane] != (lane < 16 ? low : high))
            fail_msg("%s: %u in lane %u", body, out[lane], lane);
    }
    machine_destroy(machine);
}

static void test_halves(void **state)
{
    check("redux.sync.add.u32 %r4, %r3, %r2;", 1200, 3760);
    check("redux.sync.max.u32 %r4, %r3, %r2;", 150, 310);
    check("vote.sync.ballot.b32 %r4, %p2, %r2;", 0xffc0, 0xffff0000);
    check("vote.sync.all.pred %p3, %p2, %r2;\nselp.u32 %r4, 1, 0, %p3;", 0, 1);
    check("vote.sync.any.pred %p3, !%p2, %r2;\nselp.u32 %r4, 1, 0, %p3;", 1, 0);
    check("shr.u32 %r3, %r1, 4;\nmatch.any.sync.b32 %r4, %r3, %r2;", 0xffff, 0xffff0000);
    check("mov.u32 %r3, 7;\nmatch.all.sync.b32 %r4|%p3, %r3, %r2;", 0xffff, 0xffff0000);
    check("elect.sync %r4|%p3, %r2;", 0, 16);
    check("and.b32 %r5, %r1, 16;\nshfl.sync.idx.b32 %r4, %r3, %r5, 31, %r2;", 0, 160);
    check("bar.warp.sync %r2;\nmov.u32 %r4, 3;", 3, 3);
}

/* The halves come to the instruction at different times. */
static void test_apart(void **state)
{
    check("@!%p1 bra wait;\nbra both;\nwait:\nnanosleep.u32 10;\nboth:\n"
          "redux.sync.add.u32 %r4, %r3, %r2;",
          1200, 3760);
    check("setp.lt.u32 %p3, %r1, 20;\n@%p3 bra both;\nnanosleep.u32 10;\nboth:\n"
          "redux.sync.add.u32 %r4, %r3, %r2;",
          1200, 3760);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves), cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
