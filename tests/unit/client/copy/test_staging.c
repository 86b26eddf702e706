/* SPDX-License-Identifier: Apache-2.0 */
/* Staging slots under their lock: a slot waits for its fence, and for being given back. */
#include "channel_server.h"
#include "staging.h"

#include <pthread.h>

#include "client_fixture.h"

static int setup(void **state)
{
    int r = fixture_setup(state);

    client->staging_slots = 2;
    client->staging_address = 0x1000000;
    staging_init();
    return r;
}

static void test_slots_have_their_addresses(void **state)
{
    unsigned first, second;

    assert_int_equal(staging_take(&first), CUDA_SUCCESS);
    assert_int_equal(staging_take(&second), CUDA_SUCCESS);
    assert_int_not_equal(first, second);
    assert_int_equal(staging_address(0), 0x1000000);
    assert_int_equal(staging_address(1), 0x1000000 + GPU_REGION_STAGING_SLOT_SIZE);
    assert_false(staging_try_take(&first));
}

static void test_fenced_slot_is_not_taken_at_once(void **state)
{
    const struct fence fence = {.word = 3, .seq = 1};
    unsigned slots[2], slot;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(staging_take(&slots[i]), CUDA_SUCCESS);
    staging_give(slots[0], &fence);
    assert_false(staging_try_take(&slot));
    fixture.fences[3] = 1;
    assert_true(staging_try_take(&slot));
    assert_int_equal(slot, slots[0]);
}

static void *give_later(void *slot)
{
    usleep(20000);
    staging_give(*(unsigned *)slot, NULL);
    return NULL;
}

static void test_a_thread_waits_for_a_slot(void **state)
{
    unsigned slots[2], slot;
    pthread_t thread;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(staging_take(&slots[i]), CUDA_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, give_later, &slots[1]), 0);
    assert_int_equal(staging_take(&slot), CUDA_SUCCESS);
    assert_int_equal(slot, slots[1]);
    pthread_join(thread, NULL);
}

static void *arrive_later(void *unused)
{
    usleep(20000);
    fixture.fences[3] = 1;
    return NULL;
}

static void test_a_thread_waits_for_the_fence_of_its_slot(void **state)
{
    const struct fence fence = {.word = 3, .seq = 1};
    unsigned slots[2], slot;
    pthread_t thread;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(staging_take(&slots[i]), CUDA_SUCCESS);
    staging_give(slots[0], &fence);
    assert_int_equal(pthread_create(&thread, NULL, arrive_later, NULL), 0);
    assert_int_equal(staging_take(&slot), CUDA_SUCCESS);
    assert_int_equal(slot, slots[0]);
    assert_true(fence_passed(fence));
    pthread_join(thread, NULL);
}

static void test_fence_that_never_passes_is_an_error_and_keeps_no_slot(void **state)
{
    const struct fence fence = {.word = 3, .seq = 1};
    unsigned slots[2], slot;

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(staging_take(&slots[i]), CUDA_SUCCESS);
    staging_give(slots[0], &fence);
    channel_server_fail(fixture.server, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(staging_take(&slot), CUDA_ERROR_LAUNCH_FAILED);
    assert_true(staging_try_take(&slot));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_slots_have_their_addresses),
        CASE(test_fenced_slot_is_not_taken_at_once),
        CASE(test_a_thread_waits_for_a_slot),
        CASE(test_a_thread_waits_for_the_fence_of_its_slot),
        CASE(test_fence_that_never_passes_is_an_error_and_keeps_no_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
