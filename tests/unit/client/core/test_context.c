/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of a client: which one a thread has, and when it can be used. */
#include "client_context.h"

#include <pthread.h>

#include "client_core_fixture.h"

static struct context *primary(void)
{
    return client->devices[0].primary;
}

static void make_current(CUcontext handle)
{
    assert_int_equal(context_stack_push(&thread_self()->stack, handle), 0);
}

static void test_thread_without_a_context(void **state)
{
    struct context *context;

    assert_int_equal(context_current(&context), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(context_resolve(NULL, &context), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_primary_context_is_used_while_it_is_retained(void **state)
{
    struct context *context;

    make_current(primary()->handle);
    assert_int_equal(context_current(&context), CUDA_ERROR_INVALID_CONTEXT);
    primary()->active = true;
    assert_int_equal(context_current(&context), CUDA_SUCCESS);
    assert_ptr_equal(context, primary());
    assert_int_equal(context_enter(&context), CUDA_SUCCESS);
}

static void test_destroyed_context_stays_in_the_stack(void **state)
{
    struct context *made = context_create(&client->devices[0]), *context;

    made->active = true;
    make_current(made->handle);
    assert_int_equal(context_current(&context), CUDA_SUCCESS);
    handles_remove(&client->handles, CLIENT_CONTEXT, (uint64_t)made->handle);
    assert_int_equal(context_current(&context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(context_resolve(made->handle, &context), CUDA_ERROR_INVALID_CONTEXT);
    assert_null(context_lookup(made->handle));
}

static void test_lost_server_is_reported_before_the_context_is_used(void **state)
{
    struct context *context;

    primary()->active = true;
    make_current(primary()->handle);
    client->channel.region->sticky_error = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(context_enter(&context), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(context_current(&context), CUDA_SUCCESS);
}

static void *look(void *ret_result)
{
    struct context *context;

    *(CUresult *)ret_result = context_current(&context);
    return NULL;
}

static void test_each_thread_has_its_own_stack(void **state)
{
    CUresult result = CUDA_SUCCESS;
    pthread_t thread;

    primary()->active = true;
    make_current(primary()->handle);
    assert_int_equal(pthread_create(&thread, NULL, look, &result), 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, CUDA_ERROR_INVALID_CONTEXT);
}

/* As in a child of fork, which is another client: the stack is the parent's. */
static void test_new_client_forgets_the_stack_but_not_the_meaning_of_stream_0(void **state)
{
    struct context *context;

    primary()->active = true;
    make_current(primary()->handle);
    assert_null(client_default_stream_swap(CU_STREAM_PER_THREAD));
    client->generation += 1000;
    assert_int_equal(context_current(&context), CUDA_ERROR_INVALID_CONTEXT);
    assert_ptr_equal(client_default_stream_swap(NULL), CU_STREAM_PER_THREAD);
}

static void test_devices_are_found_by_both_numbers(void **state)
{
    client->devices[0].index = 5;
    assert_ptr_equal(device_lookup(0), &client->devices[0]);
    assert_null(device_lookup(1));
    assert_null(device_lookup(-1));
    assert_ptr_equal(device_with_index(5), &client->devices[0]);
    assert_null(device_with_index(0));
}

static void test_absent_features_are_reported_whatever_the_driver_says(void **state)
{
    core_fixture.record.attributes[CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED] = 1;
    core_fixture.record.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
    assert_int_equal(device_attribute(device_lookup(0), CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED),
                     0);
    assert_int_equal(device_attribute(device_lookup(0), CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_int_equal(device_attribute(device_lookup(0), DEVICE_ATTRIBUTES_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_CASE(test_thread_without_a_context),
        CORE_CASE(test_primary_context_is_used_while_it_is_retained),
        CORE_CASE(test_destroyed_context_stays_in_the_stack),
        CORE_CASE(test_lost_server_is_reported_before_the_context_is_used),
        CORE_CASE(test_each_thread_has_its_own_stack),
        CORE_CASE(test_new_client_forgets_the_stack_but_not_the_meaning_of_stream_0),
        CORE_CASE(test_devices_are_found_by_both_numbers),
        CORE_CASE(test_absent_features_are_reported_whatever_the_driver_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
