/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers in shared memory, instruction by instruction, and what is refused beside them.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define HEAD(target)                       \
    ".version 8.6\n.target " target "\n"   \
    ".address_size 64\n"                   \
    ".visible .entry k(.param .u64 out)\n" \
    "{\n"                                  \
    ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n"

#define START                           \
    HEAD("sm_90")                       \
    ".shared .align 8 .b64 bar;\n"      \
    ".shared .align 16 .b8 data[64];\n" \
    "ld.param.u64 %rd1, [out];\n"       \
    "mov.u32 %r1, bar;\n"

#define END "ret;\n}\n"

/* Stores whether the phase of this parity is over. */
#define TEST(parity, at)                                             \
    "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], " #parity \
    ";\nselp.u32 %r9, 1, 0, %p1;\nst.global.u32 [%rd1+" #at "], %r9;\n"

static CUresult run(const char *text, uint32_t threads, uint32_t out[16], char message[512])
{
    struct machine *machine = machine_create_from(text);
    uint32_t *memory = machine_memory(machine, 64);
    CUresult result = machine_launch(machine, "k", 1, threads, 0, (void *[]){&memory});
    memcpy(out, memory, 64);
    snprintf(message, 512, "%s", machine->message);
    machine_destroy(machine);
    return result;
}

static void expect(const char *text, uint32_t threads, const uint32_t *expected, unsigned count)
{
    uint32_t out[16];
    char message[512];
    CUresult result = run(text, threads, out, message);
    if (result != CUDA_SUCCESS)
        fail_msg("%d: %s", result, message);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(out[i], expected[i]);
}

static void test_phases(void **state)
{
    expect(
        START "mbarrier.init.shared.b64 [%r1], 2;\n" TEST(1, 0)
            TEST(0, 4) "mbarrier.arrive.shared.b64 %rd2, [%r1];\n" TEST(
                0, 8) "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1], 1;\n" TEST(0, 12)
                TEST(1,
                     16) "mbarrier.test_wait.shared.b64 %p2, [%r1], %rd2;\n"
                         "selp.u32 %r2, 1, 0, %p2;\nst.global.u32 [%rd1+20], %r2;\n"
                         "mbarrier.pending_count.b64 %r3, %rd2;\nst.global.u32 [%rd1+24], %r3;\n"
                         "mbarrier.arrive.shared.b64 %rd3, [%r1];\n"
                         "mbarrier.try_wait.acquire.cta.shared::cta.b64 %p3, [%r1], %rd3, 1000;\n"
                         "selp.u32 %r4, 1, 0, %p3;\nst.global.u32 [%rd1+28], %r4;\n" END,
        1, (const uint32_t[]){1, 0, 0, 1, 0, 1, 2, 0}, 8);
}

static void test_dropping(void **state)
{
    expect(
        START
        "mbarrier.init.shared.b64 [%r1], 3;\n"
        "mbarrier.arrive_drop.noComplete.shared.b64 %rd2, [%r1], 2;\n" TEST(
            0,
            0) "mbarrier.arrive.shared.b64 _, [%r1];\n" TEST(0,
                                                             4) "mbarrier.arrive.shared.b64 %rd3, "
                                                                "[%r1];\n" TEST(1,
                                                                                8) "mbarrier."
                                                                                   "pending_count."
                                                                                   "b64 %r3, "
                                                                                   "%rd3;\nst."
                                                                                   "global.u32 "
                                                                                   "[%rd1+12], "
                                                                                   "%r3;\n"
                                                                                   "mbarrier.inval."
                                                                                   "shared.b64 "
                                                                                   "[%r1];\n" END,
        1, (const uint32_t[]){0, 1, 1, 1}, 4);
}

/* Bytes hold a phase up, in whatever order they and the arrivals come. */
static void test_bytes(void **state)
{
    expect(START
           "mbarrier.init.shared.b64 [%r1], 1;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;\n" TEST(
               0, 0) "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], "
                     "48;\n" TEST(0, 4) "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 "
                                        "[%r1], 16;\n" TEST(
                                            0, 8) "mbarrier.complete_tx.shared::cta."
                                                  "b64 [%r1], 8;\n"
                                                  "mbarrier.expect_tx.relaxed.cta."
                                                  "shared::cta.b64 [%r1], 8;\n" TEST(
                                                      1, 12) "mbarrier.arrive.shared."
                                                             "b64 _, [%r1];\n" TEST(1, 16) END,
           1, (const uint32_t[]){0, 0, 1, 0, 1}, 5);
}

/* A warp that waits for another, by a generic address. */
static void test_waiting(void **state)
{
    expect(START
           "mov.u32 %r2, %tid.x;\ncvt.u64.u32 %rd4, %r1;\ncvta.shared.u64 %rd4, %rd4;\n"
           "setp.ne.u32 %p4, %r2, 0;\n@%p4 bra meet;\nmbarrier.init.b64 [%rd4], 32;\n"
           "meet:\nbar.sync 0;\nsetp.ge.u32 %p5, %r2, 32;\n@%p5 bra other;\n"
           "again:\nmbarrier.try_wait.parity.b64 %p6, [%rd4], 0;\n@!%p6 bra again;\n"
           "ld.shared.u32 %r3, [data];\nadd.u32 %r3, %r3, %r2;\nmul.wide.u32 %rd5, %r2, 4;\n"
           "add.u64 %rd5, %rd5, %rd1;\nsetp.lt.u32 %p7, %r2, 16;\n@%p7 st.global.u32 [%rd5], %r3;\n"
           "bra end;\nother:\nmov.u32 %r4, 70;\nst.shared.u32 [data], %r4;\n"
           "mbarrier.arrive.b64 %rd6, [%rd4];\nend:\n" END,
           64, (const uint32_t[]){70, 71, 72, 73}, 4);
}

static void test_copies(void **state)
{
    expect(START "mbarrier.init.shared.b64 [%r1], 1;\n"
                 "cp.async.ca.shared.global [data], [%rd1], 4;\n"
                 "cp.async.mbarrier.arrive.shared.b64 [%r1];\n" TEST(
                     0, 0) "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n" TEST(0, 4) END,
           1, (const uint32_t[]){0, 1}, 2);
}

/* The first warp copies for both, and no barrier keeps its next copy from data that the second warp
 * has not read yet. In CUDA 11.8 cuda::pipeline relies on the time that a copy takes. */
static void test_copies_behind_readers(void **state)
{
    expect(START
           "mov.u32 %r2, %tid.x;\nshr.u32 %r3, %r2, 5;\nmov.u32 %r4, 0;\n"
           "setp.ne.u32 %p4, %r2, 0;\n@%p4 bra meet;\nmbarrier.init.shared.b64 [%r1], 64;\n"
           "mov.u32 %r7, 70;\nst.global.u32 [%rd1+32], %r7;\n"
           "mov.u32 %r7, 71;\nst.global.u32 [%rd1+36], %r7;\n"
           "mov.u32 %r7, 72;\nst.global.u32 [%rd1+40], %r7;\n"
           "mov.u32 %r7, 73;\nst.global.u32 [%rd1+44], %r7;\n"
           "meet:\nbar.sync 0;\n"
           "round:\nmul.wide.u32 %rd2, %r4, 4;\nadd.u64 %rd2, %rd2, %rd1;\n"
           "setp.ne.u32 %p5, %r3, 0;\n"
           "@!%p5 cp.async.ca.shared.global [data], [%rd2+32], 4;\n"
           "cp.async.mbarrier.arrive.shared.b64 [%r1];\nmbarrier.arrive.shared.b64 %rd3, [%r1];\n"
           "and.b32 %r5, %r4, 1;\n"
           "again:\nmbarrier.test_wait.parity.shared.b64 %p6, [%r1], %r5;\n@!%p6 bra again;\n"
           "ld.shared.u32 %r6, [data];\nsetp.ne.u32 %p7, %r2, 32;\n"
           "@!%p7 st.global.u32 [%rd2], %r6;\n"
           "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, 4;\n@%p3 bra round;\n" END,
           64, (const uint32_t[]){70, 71, 72, 73}, 4);
}

static void expect_fault(const char *text, CUresult expected, const char *words)
{
    uint32_t out[16];
    char message[512];
    assert_int_equal(run(text, 1, out, message), expected);
    if (!strstr(message, words) || !strstr(message, "kernel k") || !strstr(message, "PTX line"))
        fail_msg("%s", message);
}

static void test_misuse(void **state)
{
    expect_fault(START "mbarrier.init.shared.b64 [%r1], 1;\n"
                       "mbarrier.arrive.shared.b64 _, [%r1], 2;\n" END,
                 CUDA_ERROR_LAUNCH_FAILED, "a count of 2 at a barrier that lacks 1 arrivals");
    expect_fault(START "mbarrier.init.b64 [%rd1], 1;\n" END, CUDA_ERROR_ILLEGAL_ADDRESS,
                 "outside of shared memory");
    expect_fault(START "mbarrier.init.shared.b64 [%r1+4], 1;\n" END, CUDA_ERROR_MISALIGNED_ADDRESS,
                 "misaligned");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases), cmocka_unit_test(test_dropping),
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_copies), cmocka_unit_test(test_copies_behind_readers),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
