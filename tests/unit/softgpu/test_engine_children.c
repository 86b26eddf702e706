/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that launch kernels: what is refused, and what the end of one is for the others. That it
 * works is what tests/api/runtime/device_launches.cu shows.
 */
#include "machine.h"

#include <pthread.h>
#include <string.h>

static struct machine *machine;
static uint32_t *words;

static int set_up(void **state)
{
    machine = machine_create("children.ptx");
    words = machine_memory(machine, 64);
    return 0;
}

static int tear_down(void **state)
{
    machine_destroy(machine);
    return 0;
}

static CUresult run(const char *kernel)
{
    void *params[] = {&words};

    return machine_launch(machine, kernel, 1, 1, 0, params);
}

/* ---- limits ---- */

static void generations_are_limited(void **state)
{
    assert_int_equal(run("nest"), CUDA_SUCCESS);
    assert_int_equal(words[0], 25);
    assert_int_equal(words[1], 65);
    assert_int_equal(words[2], 65);
}

static void pending_launches_are_limited(void **state)
{
    assert_int_equal(run("flood"), CUDA_SUCCESS);
    assert_int_equal(words[1], 1 << 16);
    assert_int_equal(words[2], 69);
    assert_int_equal(words[0], words[1]);
}

/* ---- errors ---- */

static uint32_t error_of_launch_at(const void *at)
{
    void *params[] = {&words, &at};

    words[1] = 0;
    assert_int_equal(machine_launch(machine, "launch_at", 1, 1, 0, params), CUDA_SUCCESS);
    return words[1];
}

static void a_buffer_must_be_one(void **state)
{
    static const uint8_t foreign[128];
    uint8_t *memory = machine_memory(machine, 4096);

    assert_int_equal(error_of_launch_at(NULL), 1);
    assert_int_equal(error_of_launch_at(foreign + 64), 1);
    assert_int_equal(error_of_launch_at(memory + 64), 1);
    memset(memory, 0xff, 4096);
    assert_int_equal(error_of_launch_at(memory + 64), 1);
    assert_int_equal(error_of_launch_at(memory), 1);
}

static void a_shape_must_be_possible(void **state)
{
    assert_int_equal(run("too_wide"), CUDA_SUCCESS);
    assert_int_equal(words[1], 9);
    assert_int_equal(words[0], 0);
}

static void only_kernels_are_launched(void **state)
{
    words[0] = words[1] = 1;
    assert_int_equal(run("no_kernel"), CUDA_SUCCESS);
    assert_int_equal(words[0] | words[1], 0);
    assert_int_equal(words[2], 1);
}

static void streams_do_not_block(void **state)
{
    assert_int_equal(run("blocking_stream"), CUDA_SUCCESS);
    assert_int_equal(words[1], 1);
    assert_int_equal(words[0], 0);
}

/* ---- ends ---- */

static CUresult copy(const void *to, const void *from)
{
    void *params[] = {&words, &to, &from};

    words[0] = 0;
    return machine_launch(machine, "copy", 1, 1, 0, params);
}

static void copies_stay_in_memory(void **state)
{
    static uint64_t foreign = 5;
    uint64_t *memory = machine_memory(machine, 16);

    memory[0] = 7;
    assert_int_equal(copy(memory + 1, memory), CUDA_SUCCESS);
    assert_int_equal(memory[1], 7);
    assert_int_equal(words[0], 1);
    assert_int_equal(copy(&foreign, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(foreign, 5);
    assert_int_equal(copy(memory, &foreign), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(copy((char *)(memory + 1) + 1, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_non_null(strstr(machine->message, "copies 8 bytes"));
    assert_int_equal(words[0], 0);
}

/* Its calls are CUDA 11's. */
static void the_runtime_of_cuda_11_is_there(void **state)
{
    struct machine *older = machine_create("children_cuda11.ptx");
    uint32_t *found = machine_memory(older, 64);
    void *params[] = {&found};

    assert_int_equal(machine_launch(older, "parent", 1, 1, 0, params), CUDA_SUCCESS);
    assert_int_equal(found[0], 2 * 3 * 5);
    assert_int_equal(found[1], 2 * 3 * 5);
    assert_int_equal(found[2], 0x07070707);
    assert_int_equal(found[3], 1);
    assert_int_equal(found[4], 0);
    assert_int_equal(found[5], 0);
    assert_int_equal(found[6], 'i' + 'c');
    machine_destroy(older);
}

static void a_fault_of_a_child_is_its_parents(void **state)
{
    assert_int_equal(run("fail_first"), CUDA_ERROR_LAUNCH_FAILED);
    assert_non_null(strstr(machine->message, "fail"));
    assert_int_equal(words[0], 0);
}

static void *abort_when_it_runs(void *unused)
{
    while (!__atomic_load_n(&words[1], __ATOMIC_ACQUIRE))
        ;
    sg_engine_abort(machine->engine, machine->space, CUDA_ERROR_LAUNCH_TIMEOUT);
    return unused;
}

static void an_abort_ends_the_family(void **state)
{
    pthread_t aborter;

    assert_int_equal(pthread_create(&aborter, NULL, abort_when_it_runs, NULL), 0);
    assert_int_equal(run("endless_first"), CUDA_ERROR_LAUNCH_TIMEOUT);
    pthread_join(aborter, NULL);
    assert_int_equal(words[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(generations_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pending_launches_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_buffer_must_be_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shape_must_be_possible, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_kernels_are_launched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_do_not_block, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_stay_in_memory, set_up, tear_down),
        cmocka_unit_test(the_runtime_of_cuda_11_is_there),
        cmocka_unit_test_setup_teardown(a_fault_of_a_child_is_its_parents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_abort_ends_the_family, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
