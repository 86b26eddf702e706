/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which block runs where and when: the blocks that an SM holds, the SMs that a grid may use, and
 * the order. Grids of one space and of several run beside each other.
 */
#include "machine.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * Every block counts itself, notes its SM, and waits until it is told to go on. What it does then
 * says when it ended. These are words: 0 blocks that have come, 1 "go on", 2 blocks that have
 * ended, 3 the SMs seen.
 */
#define WAIT_BODY                                                                  \
    "ld.param.u64 %d1, [words];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n" \
    "@%p1 bra wait;\nmov.u32 %r2, %smid;\nshl.b32 %r3, 1, %r2;\n"                  \
    "red.global.or.b32 [%d1+12], %r3;\nred.global.add.u32 [%d1], 1;\n"             \
    "wait:\nld.volatile.global.u32 %r4, [%d1+4];\nsetp.eq.u32 %p1, %r4, 0;\n"      \
    "@%p1 bra wait;\nbar.sync 0;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\n"           \
    "red.global.add.u32 [%d1+8], 1;\nret;\n}\n"

/* Registers count when they are named. */
#define USE(n) "mov.u32 %x" n ", 0;\n"
#define USE_TEN(n) \
    USE(n "0")     \
    USE(n "1")     \
    USE(n "2") USE(n "3") USE(n "4") USE(n "5") USE(n "6") USE(n "7") USE(n "8") USE(n "9")
#define USE_MANY(n) \
    USE_TEN(n "0")  \
    USE_TEN(n "1")  \
    USE_TEN(n "2")  \
    USE_TEN(n "3")  \
    USE_TEN(n "4") USE_TEN(n "5") USE_TEN(n "6") USE_TEN(n "7") USE_TEN(n "8") USE_TEN(n "9")

#define SLEEPER(name, nanoseconds)                                                                 \
    ".entry " name "(.param .u64 words)\n{\n.reg .b32 %r<5>; .reg .b64 %d<2>; .reg .pred %p<2>;\n" \
    "ld.param.u64 %d1, [words];\nmov.u32 %r1, 0;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\n"              \
    "again:\natom.global.add.u32 %r4, [%d1], 1;\nsetp.ne.u32 %p1, %r4, %r3;\n"                     \
    "@%p1 add.u32 %r2, %r2, 1;\nadd.u32 %r3, %r4, 1;\nnanosleep.u32 " nanoseconds ";\n"            \
    "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 100;\n@%p1 bra again;\n"                          \
    "red.global.add.u32 [%d1+4], %r2;\nret;\n}\n"

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".entry wait_lean(.param .u64 words)\n{\n"
    ".reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<2>;\n" WAIT_BODY
    ".entry wait_greedy(.param .u64 words)\n.maxntid 256, 1, 1\n{\n"
    ".reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<2>; .reg .b32 %x<500>;\n" USE_MANY("1")
        USE_MANY("2") USE_MANY("3") USE_MANY("4") WAIT_BODY
    ".entry wait_shared(.param .u64 words)\n{\n.shared .align 4 .b8 room[40000];\n"
    ".reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<2>;\n" WAIT_BODY
    /* words: 0 blocks that have come, 2 blocks that have seen all others. */
    ".entry meet(.param .u64 words)\n{\n"
    ".reg .b32 %r<5>; .reg .b64 %d<2>; .reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [words];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 ret;\n"
    "mov.u32 %r2, %nctaid.x;\nred.global.add.u32 [%d1], 1;\n"
    "wait:\nld.volatile.global.u32 %r3, [%d1];\nsetp.lt.u32 %p1, %r3, %r2;\n@%p1 bra wait;\n"
    "red.global.add.u32 [%d1+8], 1;\nret;\n}\n"
    /* words: 0 the next number; the block's own goes to the second argument. */
    ".entry number(.param .u64 words, .param .u64 mine)\n{\n.reg .b32 %r<3>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [words];\nld.param.u64 %d2, [mine];\natom.global.add.u32 %r1, [%d1], 1;\n"
    "st.global.u32 [%d2], %r1;\nret;\n}\n"
    /* words: 0 a counter, 1 how often another block had counted in between. */
    SLEEPER("sleeper", "10") SLEEPER("long_sleeper", "20000");

enum { CAME, GO_ON, ENDED, SMS };

struct end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned left;
    CUresult result;
};

static struct end end = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, CUDA_SUCCESS};

static void note_end(void *user, CUresult result, const char *message)
{
    pthread_mutex_lock(&end.lock);
    end.left--;
    end.result = result ? result : end.result;
    pthread_cond_signal(&end.changed);
    pthread_mutex_unlock(&end.lock);
}

static void wait_for_all(void)
{
    pthread_mutex_lock(&end.lock);
    while (end.left)
        pthread_cond_wait(&end.changed, &end.lock);
    pthread_mutex_unlock(&end.lock);
    assert_int_equal(end.result, CUDA_SUCCESS);
}

static struct sg_launch launch_of(struct machine *machine, const char *kernel, uint32_t blocks,
                                  uint32_t threads, const void *params, size_t params_size)
{
    return (struct sg_launch){
        .instance = machine->instance,
        .kernel = (unsigned)sg_module_find_kernel(machine->module, kernel),
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .params = params,
        .params_size = params_size,
        .space = machine->space,
        .done = note_end,
    };
}

static void submit(struct sg_engine *engine, const struct sg_launch *launch)
{
    pthread_mutex_lock(&end.lock);
    end.left++;
    pthread_mutex_unlock(&end.lock);
    assert_int_equal(sg_engine_submit(engine, launch), CUDA_SUCCESS);
}

static uint32_t word(const uint32_t *words, unsigned index)
{
    return __atomic_load_n(&words[index], __ATOMIC_SEQ_CST);
}

static void sleep_ms(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static void let_go(uint32_t *words)
{
    __atomic_store_n(&words[GO_ON], 1, __ATOMIC_SEQ_CST);
}

/* Comes back once so many blocks are there; if there are never so many the test does not end. */
static void await_blocks(const uint32_t *words, uint32_t count)
{
    while (word(words, CAME) < count)
        sleep_ms(1);
}

/* One thread takes the next number, which goes to the place of this index behind it. */
struct numbering {
    uint32_t *words;
    uint32_t *mine;
};

static void submit_number(struct machine *machine, struct sg_engine *engine, uint32_t *numbers,
                          unsigned which, int priority)
{
    struct numbering params = {numbers, numbers + 1 + which};
    struct sg_launch launch = launch_of(machine, "number", 1, 1, &params, sizeof(params));
    launch.priority = priority;
    submit(engine, &launch);
}

/* ---- How many ---- */

static void check_residency(const char *kernel, uint32_t threads, uint32_t dynamic_shared,
                            unsigned expected)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 2});
    uint32_t *words = machine_memory(machine, 64);
    struct sg_launch launch =
        launch_of(machine, kernel, 2 * expected + 3, threads, &words, sizeof(words));
    const struct sg_kernel_info *info = sg_module_kernel(machine->module, launch.kernel);
    launch.dynamic_shared = dynamic_shared;
    unsigned occupancy = sg_occupancy(engine, info, threads, dynamic_shared);
    if (occupancy != expected)
        fail_msg("%s, %u threads: occupancy is %u, not %u", kernel, threads, occupancy, expected);
    submit(engine, &launch);
    await_blocks(words, 2 * expected);
    sleep_ms(20);
    assert_int_equal(word(words, CAME), 2 * expected);
    assert_int_equal(word(words, ENDED), 0);
    let_go(words);
    wait_for_all();
    assert_int_equal(word(words, ENDED), 2 * expected + 3);
    assert_int_equal(word(words, SMS), 3);
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

static void test_each_limit(void **state)
{
    check_residency("wait_lean", 32, 0, 32);         /* blocks */
    check_residency("wait_lean", 1024, 0, 2);        /* threads */
    check_residency("wait_lean", 97, 0, 16);         /* threads, which come by the warp */
    check_residency("wait_lean", 32, 50 << 10, 4);   /* dynamic shared memory */
    check_residency("wait_shared", 32, 0, 5);        /* static shared memory */
    check_residency("wait_shared", 32, 35 << 10, 3); /* both */
    check_residency("wait_greedy", 256, 0, 2);       /* registers */
}

static void test_too_large(void **state)
{
    struct machine *machine = machine_create_from(text);
    uint32_t *words = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 9, 1024, &words, sizeof(words));
    launch.cooperative = true;
    assert_int_equal(sg_engine_submit(machine->engine, &launch),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    launch.cooperative = false;
    launch.dynamic_shared = 228 << 10;
    assert_int_equal(sg_engine_submit(machine->engine, &launch), CUDA_ERROR_INVALID_VALUE);
    machine_destroy(machine);
}

/* ---- Where ---- */

static void test_sm_mask(void **state)
{
    struct machine *machine = machine_create_from(text);
    uint32_t *low = machine_memory(machine, 64), *high = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 7, 1024, &low, sizeof(low));
    launch.sm_mask[0] = 0x3;
    submit(machine->engine, &launch);
    launch = launch_of(machine, "wait_lean", 2, 1024, &high, sizeof(high));
    launch.sm_mask[0] = 0x8;
    submit(machine->engine, &launch);
    await_blocks(low, 4);
    await_blocks(high, 2);
    sleep_ms(20);
    assert_int_equal(word(low, CAME), 4);
    let_go(low);
    let_go(high);
    wait_for_all();
    assert_int_equal(word(low, SMS), 0x3);
    assert_int_equal(word(high, SMS), 0x8);
    machine_destroy(machine);
}

/* ---- When ---- */

/* One full SM: the grid that was submitted last, but is more urgent, gets the first capacity. */
static void test_priorities(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine =
        sg_engine_create(&(struct sg_engine_config){.sm_count = 1, .host_threads = 1});
    uint32_t *words = machine_memory(machine, 64), *numbers = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 2, 1024, &words, sizeof(words));
    submit(engine, &launch);
    await_blocks(words, 2);
    for (unsigned i = 0; i < 3; i++)
        submit_number(machine, engine, numbers, i, 5 - (int)i);
    assert_int_equal(word(numbers, 0), 0);
    let_go(words);
    wait_for_all();
    assert_int_equal(numbers[1], 2);
    assert_int_equal(numbers[2], 1);
    assert_int_equal(numbers[3], 0);
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

/* Each grid waits until the other's blocks are there; the second is in a space of its own. */
static void check_overlap(struct machine *machine, struct sg_space *other)
{
    uint32_t *first = machine_memory(machine, 64), *second = machine_memory(machine, 64);
    if (other != machine->space)
        assert_int_equal(sg_space_add(other, (uintptr_t)second, 64, SG_READ | SG_WRITE), 0);
    struct sg_launch launch = launch_of(machine, "wait_lean", 4, 1024, &first, sizeof(first));
    submit(machine->engine, &launch);
    launch = launch_of(machine, "wait_lean", 4, 1024, &second, sizeof(second));
    launch.space = other;
    submit(machine->engine, &launch);
    await_blocks(first, 4);
    await_blocks(second, 4);
    let_go(second);
    let_go(first);
    wait_for_all();
}

static void test_overlap(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_space *other = sg_space_create();
    check_overlap(machine, machine->space);
    check_overlap(machine, other);
    machine_destroy(machine);
    sg_space_destroy(other);
}

/* A long grid that fills the device leaves capacity to others between its blocks. */
static void test_fair_turns(void **state)
{
    struct machine *machine = machine_create_from(text);
    uint32_t *words = machine_memory(machine, 64), *numbers = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 100, 1024, &words, sizeof(words));
    submit(machine->engine, &launch);
    await_blocks(words, 8);
    submit_number(machine, machine->engine, numbers, 0, 0);
    let_go(words);
    wait_for_all();
    assert_int_equal(word(numbers, 0), 1);
    assert_int_equal(word(words, ENDED), 100);
    machine_destroy(machine);
}

/* ---- Cooperative grids ---- */

static void submit_cooperative(struct machine *machine, struct sg_engine *engine,
                               const char *kernel, uint32_t blocks, uint32_t **words)
{
    struct sg_launch launch = launch_of(machine, kernel, blocks, 1024, words, sizeof(*words));
    launch.cooperative = true;
    launch.user = *words;
    submit(engine, &launch);
}

/* Each fills the engine, so none of the second may start before the first has ended. */
static void test_cooperative_pairs(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine =
        sg_engine_create(&(struct sg_engine_config){.sm_count = 4, .timeout_ms = 20000});
    for (unsigned round = 0; round < 50; round++) {
        uint32_t *first = machine_memory(machine, 64), *second = machine_memory(machine, 64);
        submit_cooperative(machine, engine, "meet", 8, &first);
        submit_cooperative(machine, engine, "meet", 8, &second);
        wait_for_all();
        assert_int_equal(word(first, ENDED), 8);
        assert_int_equal(word(second, ENDED), 8);
    }
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

/* Half an SM is taken. A grid that needs all of it has no block there, and later ones wait with it,
 * but for the more urgent. */
static void test_cooperative_order(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 1});
    uint32_t *words = machine_memory(machine, 64), *numbers = machine_memory(machine, 64),
             *whole = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 1, 1024, &words, sizeof(words));
    submit(engine, &launch);
    await_blocks(words, 1);
    submit_cooperative(machine, engine, "wait_lean", 2, &whole);
    submit_number(machine, engine, numbers, 0, 0);
    submit_number(machine, engine, numbers, 1, -1);
    await_blocks(numbers, 1);
    sleep_ms(20);
    assert_int_equal(word(numbers, 0), 1);
    assert_int_equal(word(whole, CAME), 0);
    let_go(words);
    await_blocks(whole, 2);
    let_go(whole);
    wait_for_all();
    assert_int_equal(word(numbers, 0), 2);
    assert_int_equal(numbers[1], 1);
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

/* One that ends before it starts makes nothing else wait. */
static void test_cooperative_abort(void **state)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine = sg_engine_create(&(struct sg_engine_config){.sm_count = 2});
    uint32_t *words = machine_memory(machine, 64), *numbers = machine_memory(machine, 64),
             *whole = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, "wait_lean", 1, 1024, &words, sizeof(words));
    submit(engine, &launch);
    await_blocks(words, 1);
    submit_cooperative(machine, engine, "meet", 4, &whole);
    submit_number(machine, engine, numbers, 0, 0);
    sg_engine_abort_launch(engine, whole);
    await_blocks(numbers, 1);
    assert_int_equal(word(whole, CAME), 0);
    let_go(words);
    wait_for_all();
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

/* Two blocks of one host thread take turns whenever they sleep, for long ones in which the thread
 * sleeps as well. */
static void check_sleepers(const char *kernel)
{
    struct machine *machine = machine_create_from(text);
    struct sg_engine *engine =
        sg_engine_create(&(struct sg_engine_config){.sm_count = 2, .host_threads = 1});
    uint32_t *words = machine_memory(machine, 64);
    struct sg_launch launch = launch_of(machine, kernel, 2, 1, &words, sizeof(words));
    submit(engine, &launch);
    wait_for_all();
    assert_int_equal(words[0], 200);
    assert_in_range(words[1], 190, 200);
    sg_engine_destroy(engine);
    machine_destroy(machine);
}

static void test_sleepers(void **state)
{
    check_sleepers("sleeper");
    check_sleepers("long_sleeper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_limit),        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_sm_mask),           cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_overlap),           cmocka_unit_test(test_fair_turns),
        cmocka_unit_test(test_cooperative_pairs), cmocka_unit_test(test_cooperative_order),
        cmocka_unit_test(test_cooperative_abort), cmocka_unit_test(test_sleepers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
