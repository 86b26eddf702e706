/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warps that run side by side until one goes its own way, and registers that never change: five
 * warps, the last of them not whole.
 */
#include "machine.h"

#define THREADS 150

#define KERNEL(name)                                  \
    ".version 8.0\n.target sm_90\n.address_size 64\n" \
    ".visible .entry " name "(.param .u64 to)\n{\n"   \
    ".reg .b64 %a<9>;\n.reg .b32 %r<19>;\n.reg .pred %p<9>;\n"

/* The thread's word of the output, at %a1; the thread's number is in %r1. */
#define PLACE                                         \
    "ld.param.u64 %a2, [to];\nmov.u32 %r1, %tid.x;\n" \
    "mul.wide.u32 %a3, %r1, 4;\nadd.s64 %a1, %a2, %a3;\n"

static void run(const char *text, const char *kernel, uint32_t (*expected)(uint32_t thread))
{
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, THREADS * sizeof(*out));
    CUresult result = machine_launch(machine, kernel, 1, THREADS, 0, (void *[]){&out});
    if (result != CUDA_SUCCESS)
        fail_msg("%s: %d: %s", kernel, result, machine->message);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (out[i] != expected(i))
            fail_msg("%s: thread %u has %u, not %u", kernel, i, out[i], expected(i));
    }
    machine_destroy(machine);
}

/* Each warp takes another number of rounds, and in each of them its lanes take two ways. */
static const char apart[] = KERNEL("apart") PLACE
    "shr.u32 %r2, %r1, 5;\nmul.lo.u32 %r3, %r2, 3;\nadd.u32 %r3, %r3, 2;\nmov.u32 %r4, %r1;\n"
    "again:\n"
    "mov.u32 %r7, 3;\n"
    "mad.lo.u32 %r4, %r4, %r7, 1;\n"
    "and.b32 %r5, %r4, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra even;\n"
    "add.u32 %r4, %r4, 7;\n"
    "even:\n"
    "xor.b32 %r4, %r4, %r2;\nadd.u32 %r3, %r3, -1;\n"
    "setp.ne.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
    "st.global.u32 [%a1], %r4;\nret;\n}\n";

static uint32_t expected_apart(uint32_t thread)
{
    uint32_t value = thread, warp = thread / 32;
    for (uint32_t round = 0; round < warp * 3 + 2; round++) {
        value = value * 3 + 1;
        value += value & 1 ? 7 : 0;
        value ^= warp;
    }
    return value;
}

static void test_apart(void **state)
{
    run(apart, "apart", expected_apart);
}

/*
 * Even threads leave at once, one warp after the other, while the odd ones of the warps before wait
 * at a barrier already. The last ones to leave open it.
 */
static const char leave[] =
    KERNEL("leave") ".shared .b32 sum;\n" PLACE
                    "setp.eq.u32 %p3, %r1, 1;\nmov.u32 %r8, sum;\n@%p3 st.shared.u32 [%r8], 0;\n"
                    "bar.sync 0;\n"
                    "and.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra gone;\n"
                    "red.shared.add.u32 [%r8], %r1;\nbar.sync 1;\n"
                    "ld.shared.u32 %r4, [%r8];\nst.global.u32 [%a1], %r4;\nret;\n"
                    "gone:\nst.global.u32 [%a1], %r1;\nexit;\n}\n";

static uint32_t expected_leave(uint32_t thread)
{
    return thread % 2 ? THREADS / 2 * (THREADS / 2) : thread;
}

static void test_leave(void **state)
{
    run(leave, "leave", expected_leave);
}

/* Warp 0 tells without waiting, the others wait for it: 2 warps, then 3, at one barrier each. */
static const char arrive[] = KERNEL(
    "arrive") ".shared .b32 word;\n" PLACE
              "mov.u32 %r8, word;\nshr.u32 %r2, %r1, 5;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra wait;\n"
              "st.shared.u32 [%r8], 77;\nbar.arrive 2, 160;\n"
              "st.global.u32 [%a1], %r1;\nret;\n"
              "wait:\nbar.sync 2, 160;\nld.shared.u32 %r4, [%r8];\nst.global.u32 [%a1], "
              "%r4;\nret;\n}\n";

static uint32_t expected_arrive(uint32_t thread)
{
    return thread < 32 ? thread : 77;
}

static void test_arrive(void **state)
{
    run(arrive, "arrive", expected_arrive);
}

/* %r2 to %r6 have a mov of a constant each, but are written elsewhere, too, or only by some. */
static const char changing[] = KERNEL("changing") PLACE
    "and.b32 %r9, %r1, 1;\nsetp.eq.u32 %p1, %r9, 0;\n"
    "mov.u32 %r2, 100;\n@%p1 mov.u32 %r2, 200;\n"
    "mov.u32 %r3, 5;\nmov.b64 %a4, {%r1, %r1};\nmov.b64 {%r10, %r3}, %a4;\n"
    "mov.u32 %r4, 1;\nadd.u32 %r4, %r4, %r1;\n"
    "mov.u32 %r5, 9;\nshfl.sync.idx.b32 %r5|%p2, %r1, 0, 31, -1;\n"
    "mov.u32 %r11, 11;\nmov.u32 %r12, %tid.x;\n"
    "add.u32 %r6, %r2, %r3;\nadd.u32 %r6, %r6, %r4;\nadd.u32 %r6, %r6, %r5;\n"
    "add.u32 %r6, %r6, %r11;\nadd.u32 %r6, %r6, %r12;\n"
    "st.global.u32 [%a1], %r6;\nret;\n}\n";

static uint32_t expected_changing(uint32_t thread)
{
    return (thread % 2 ? 100 : 200) + thread + (thread + 1) + thread / 32 * 32 + 11 + thread;
}

static void test_changing(void **state)
{
    run(changing, "changing", expected_changing);
}

/* What a call returns is not what a mov put there; constants outlive a call that recurs. */
static const char called[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".func (.reg .b32 %result) twice(.reg .b32 %given)\n{\n.reg .b32 %two;\n"
    "mov.u32 %two, 2;\nmul.lo.u32 %result, %given, %two;\nret;\n}\n"
    ".visible .entry called(.param .u64 to)\n{\n"
    ".reg .b64 %a<9>;\n.reg .b32 %r<19>;\n.reg .pred %p<9>;\n" PLACE
    "mov.u32 %r2, 3;\nmov.u32 %r3, 1000;\ncall (%r2), twice, (%r1);\n"
    "add.u32 %r2, %r2, %r3;\nst.global.u32 [%a1], %r2;\nret;\n}\n";

static uint32_t expected_called(uint32_t thread)
{
    return 2 * thread + 1000;
}

static void test_called(void **state)
{
    run(called, "called", expected_called);
}

/* Parameters that are loaded once (%r2, %r3, %a4), in two places (%r4), under a guard (%r5), or
 * changed afterwards (%r6). Each launch has others, and so have blocks that take turns in the same
 * memory. Each block's threads add to their words. */
static const char parameters[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry parameters(.param .u64 to, "
    ".param .u32 one, .param .align 4 .b8 pair[8], .param .u64 wide)\n{\n"
    ".reg .b64 %a<9>;\n.reg .b32 %r<19>;\n.reg .pred %p<9>;\n"
    "ld.param.u64 %a2, [to];\ncvta.to.global.u64 %a5, %a2;\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %a3, %r1, 4;\nadd.s64 %a1, %a5, %a3;\n"
    "ld.param.u32 %r2, [one];\nld.param.b32 %r3, [pair+4];\nld.param.u64 %a4, [wide];\n"
    "and.b32 %r9, %r1, 1;\nsetp.eq.u32 %p1, %r9, 0;\n"
    "@%p1 bra even;\nld.param.u32 %r4, [one];\nbra both;\neven:\nld.param.u32 %r4, [pair];\n"
    "both:\nmov.u32 %r5, 1;\n@%p1 ld.param.u32 %r5, [one];\n"
    "ld.param.u32 %r6, [one];\nadd.u32 %r6, %r6, %r1;\ncvt.u32.u64 %r7, %a4;\n"
    "add.u32 %r8, %r2, %r3;\nadd.u32 %r8, %r8, %r4;\nadd.u32 %r8, %r8, %r5;\n"
    "add.u32 %r8, %r8, %r6;\nadd.u32 %r8, %r8, %r7;\n"
    "red.global.add.u32 [%a1], %r8;\nret;\n}\n";

static uint32_t expected_sum(uint32_t thread, uint32_t one, const uint32_t pair[2], uint64_t wide)
{
    bool is_even = thread % 2 == 0;
    return one + pair[1] + (is_even ? pair[0] : one) + (is_even ? one : 1) + (one + thread) +
           (uint32_t)wide;
}

static void test_parameters(void **state)
{
    struct machine *machine = machine_create_from(parameters);
    uint32_t *out = machine_memory(machine, THREADS * sizeof(*out)), expected[THREADS] = {0};
    for (uint32_t launch = 0; launch < 3; launch++) {
        uint32_t one = 10 + launch, pair[2] = {1000 * launch, 7 + launch};
        uint64_t wide = 1ull << 40 | 100000 * launch;
        void *params[] = {&out, &one, pair, &wide};
        assert_int_equal(machine_launch(machine, "parameters", 20, THREADS, 0, params), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            expected[i] += 20 * expected_sum(i, one, pair, wide);
            assert_int_equal(out[i], expected[i]);
        }
    }
    machine_destroy(machine);
}

/*
 * Two warps raise a flag each, look at the other's, and back off when it is up: done in lockstep,
 * both would back off forever. `body` is a round, with the own flag at %a4 and the other's at
 * %a5. It jumps to "got", or goes on to the end of the round, and that jumps back to "again".
 */
#define BACKS_OFF(name, before, body)                                                         \
    KERNEL(name)                                                                              \
    ".shared .align 4 .b8 flags[8];\n" PLACE                                                  \
    "shr.u32 %r2, %r1, 5;\nsetp.gt.u32 %p4, %r2, 1;\n@%p4 bra done;\n"                        \
    "mov.u64 %a6, flags;\nmul.wide.u32 %a7, %r2, 4;\nadd.s64 %a4, %a6, %a7;\n"                \
    "xor.b32 %r3, %r2, 1;\nmul.wide.u32 %a7, %r3, 4;\nadd.s64 %a5, %a6, %a7;\n"               \
    "mov.u32 %r6, 0;\nst.volatile.shared.u32 [%a4], 0;\nbarrier.sync 1, 64;\n" before         \
    "again:\n" body "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 1000000;\n@%p2 bra again;\n" \
    "bra.uni failed;\n"                                                                       \
    "got:\nst.volatile.shared.u32 [%a4], 0;\ndone:\nst.global.u32 [%a1], 1;\nret;\n"          \
    "failed:\nst.global.u32 [%a1], 0;\nret;\n}\n"
#define RAISE "st.volatile.shared.u32 [%a4], 1;\n"
#define LOWER "st.volatile.shared.u32 [%a4], 0;\n"
#define LOOK "ld.volatile.shared.u32 %r7, [%a5];\nsetp.eq.u32 %p1, %r7, 0;\n@%p1 bra got;\n"

/* Where a turn may end, the flags are down, or up. */
static const char backs_off_down[] = BACKS_OFF("down", "", RAISE LOOK LOWER);
static const char backs_off_up[] = BACKS_OFF("up", RAISE, LOOK LOWER RAISE);

static uint32_t expected_one(uint32_t thread)
{
    return 1;
}

static void test_backs_off(void **state)
{
    run(backs_off_down, "down", expected_one);
    run(backs_off_up, "up", expected_one);
}

/* Warps that come together to different barriers wait forever; the engine detects that. */
static const char differ[] =
    KERNEL("differ") PLACE "shr.u32 %r2, %r1, 5;\nand.b32 %r2, %r2, 1;\n"
                           "bar.sync %r2;\nst.global.u32 [%a1], 1;\nret;\n}\n";

/* What stands behind a load in one stretch of code runs in vain where the load faults. */
static const char astray[] = KERNEL("astray") PLACE
    "mov.u64 %a4, 16;\nld.global.u32 %r3, [%a4];\nld.global.u32 %r4, [%a1];\n"
    "add.u32 %r4, %r4, %r3;\nst.global.u32 [%a1], 1;\nret;\n}\n";

static void check_failure(const char *text, const char *kernel, CUresult expected)
{
    struct machine *machine = machine_create_from(text);
    uint32_t *out = machine_memory(machine, THREADS * sizeof(*out));
    CUresult result = machine_launch(machine, kernel, 1, THREADS, 0, (void *[]){&out});
    if (result != expected)
        fail_msg("%s: %d: %s", kernel, result, machine->message);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (out[i] != 0)
            fail_msg("%s: thread %u went on", kernel, i);
    }
    machine_destroy(machine);
}

static void test_failures(void **state)
{
    check_failure(differ, "differ", CUDA_ERROR_LAUNCH_FAILED);
    check_failure(astray, "astray", CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apart),    cmocka_unit_test(test_leave),
        cmocka_unit_test(test_arrive),   cmocka_unit_test(test_changing),
        cmocka_unit_test(test_called),   cmocka_unit_test(test_backs_off),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
