/* SPDX-License-Identifier: Apache-2.0 */
/* FUNNEL_SOFT_STALLS: a call that waits for all kernels blocks others, as in NVIDIA's driver. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "cuda_prototypes.h"
#include "fake_core.h"
#include "soft_entry.h"

static CUcontext context;
static CUfunction one;
static CUdeviceptr memory;
static bool kernel_ended; /* atomic */

#define assert_ok(call) assert_int_equal((call), CUDA_SUCCESS)

static int set_up(void **state)
{
    one = fake_use(&context);
    assert_ok(cuMemAlloc_v2(&memory, 4096));
    kernel_ended = false;
    return 0;
}

static int tear_down(void **state)
{
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    return 0;
}

static bool is_stalling(void)
{
    return atomic_load_explicit(&soft_device_syncs, memory_order_relaxed) > 0;
}

static pthread_t start(void *(*function)(void *))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    return thread;
}

static void *free_memory(void *unused)
{
    cuCtxSetCurrent(context);
    return (void *)(intptr_t)cuMemFree_v2(memory);
}

static void *raise_stack(void *unused)
{
    cuCtxSetCurrent(context);
    return (void *)(intptr_t)cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096);
}

static void *load_module(void *unused)
{
    CUmodule other;
    cuCtxSetCurrent(context);
    return (void *)(intptr_t)cuModuleLoadData(&other, FAKE_PTX);
}

/* An error when it did not have to wait for the kernel. */
static void *make_stream(void *unused)
{
    CUstream stream;
    cuCtxSetCurrent(context);
    CUresult result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    bool waited = __atomic_load_n(&kernel_ended, __ATOMIC_SEQ_CST);
    return (void *)(intptr_t)(waited ? result : CUDA_ERROR_NOT_READY);
}

static void assert_joins(pthread_t thread)
{
    void *answer;
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_int_equal((intptr_t)answer, CUDA_SUCCESS);
}

static void expect_stall(void *(*call)(void *))
{
    assert_ok(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    pthread_t stalls = start(call);
    while (!is_stalling())
        sched_yield();
    pthread_t stands_aside = start(make_stream);
    assert_ok(cuCtxGetId(context, &(unsigned long long){0})); /* asks for nothing of the GPU */
    usleep(20000);                                            /* time enough to go wrong */
    __atomic_store_n(&kernel_ended, true, __ATOMIC_SEQ_CST);
    fake_end(CUDA_SUCCESS);
    assert_joins(stalls);
    assert_joins(stands_aside);
    assert_false(is_stalling());
}

static void test_memory(void **state)
{
    expect_stall(free_memory);
}

static void test_larger_stack(void **state)
{
    expect_stall(raise_stack);
}

static void test_module(void **state)
{
    expect_stall(load_module);
}

/* A second context of the device has a lock and streams of its own. */
static void test_other_context(void **state)
{
    CUcontext other;
    CUmodule module;
    CUstream stream;

    assert_ok(cuCtxCreate_v2(&other, 0, 0));
    assert_ok(cuCtxSetCurrent(context));
    assert_ok(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    pthread_t stalls = start(raise_stack);
    while (!is_stalling())
        sched_yield();
    assert_ok(cuCtxSetCurrent(other));
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuModuleLoadData(&module, FAKE_PTX));
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_true(is_stalling());
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_joins(stalls);
    assert_ok(cuCtxDestroy_v2(other));
    assert_ok(cuCtxSetCurrent(context));
}

/* A call that waits for a stream blocks no other. */
static void *wait_for_all(void *unused)
{
    cuCtxSetCurrent(context);
    return (void *)(intptr_t)cuCtxSynchronize();
}

static void test_synchronize(void **state)
{
    CUstream stream;
    assert_ok(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    pthread_t waits = start(wait_for_all);
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    assert_int_equal(fake_running(), 2);
    fake_end(CUDA_SUCCESS);
    fake_end(CUDA_SUCCESS);
    assert_joins(waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_larger_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_module, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_context, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_synchronize, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
