/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the software GPU's driver starts things, on a core whose grids end when the
 * test says so. The tests look at running and waiting work, and at the effect of a failure on the
 * rest. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "cuda_prototypes.h"
#include "fake_core.h"
#include "soft_extension.h"

static CUcontext context;
static CUfunction one;

#define assert_ok(call) assert_int_equal((call), CUDA_SUCCESS)

static int set_up(void **state)
{
    one = fake_use(&context);
    return 0;
}

static int tear_down(void **state)
{
    while (fake_running())
        fake_end(CUDA_SUCCESS);
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    return 0;
}

static CUstream new_stream(unsigned flags)
{
    CUstream stream;
    assert_ok(cuStreamCreate(&stream, flags));
    return stream;
}

static void launch(CUstream stream)
{
    assert_ok(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static void test_one_after_another(void **state)
{
    CUstream stream = new_stream(0);
    launch(stream);
    launch(stream);
    assert_int_equal(fake_running(), 1);
    assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuStreamQuery(stream));
    assert_ok(cuStreamSynchronize(stream));
}

static void test_side_by_side(void **state)
{
    for (int i = 0; i < 10; i++)
        launch(new_stream(0));
    assert_int_equal(fake_running(), 10);
}

static void test_legacy_waits_for_blocking(void **state)
{
    launch(new_stream(CU_STREAM_DEFAULT));
    launch(new_stream(CU_STREAM_NON_BLOCKING));
    launch(NULL);
    assert_int_equal(fake_running(), 2);
    fake_end(CUDA_SUCCESS); /* the blocking one */
    assert_int_equal(fake_running(), 2);
}

static void test_blocking_waits_for_legacy(void **state)
{
    launch(CU_STREAM_LEGACY);
    launch(new_stream(CU_STREAM_DEFAULT));
    launch(CU_STREAM_PER_THREAD);
    assert_int_equal(fake_running(), 1);
    launch(new_stream(CU_STREAM_NON_BLOCKING));
    assert_int_equal(fake_running(), 2);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 3);
}

/* Blocking streams that ask for nothing of the legacy stream do not wait for each other. */
static void test_legacy_between(void **state)
{
    CUstream a = new_stream(0), b = new_stream(0);
    launch(a);
    launch(NULL);
    launch(b);
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 1);
}

static void test_events(void **state)
{
    CUstream a = new_stream(1), b = new_stream(1);
    CUevent event;
    assert_ok(cuEventCreate(&event, 0));
    assert_ok(cuEventQuery(event));
    launch(a);
    assert_ok(cuEventRecord(event, a));
    assert_ok(cuStreamWaitEvent(b, event, 0));
    launch(b);
    assert_int_equal(fake_running(), 1);
    assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuEventQuery(event));
    assert_int_equal(fake_running(), 1);
}

static void test_the_launches_of_one_owner_are_ended(void **state)
{
    CUstream mine = new_stream(1), others = new_stream(1);
    char kernel[64];
    funnelSetLaunchOwner(7);
    launch(mine);
    launch(mine);
    funnelSetLaunchOwner(0);
    launch(others);
    launch(others);
    assert_int_equal(fake_running(), 2);
    assert_ok(funnelAbortLaunches(8, kernel, sizeof(kernel)));
    assert_string_equal(kernel, "");
    assert_ok(funnelAbortLaunches(7, kernel, sizeof(kernel)));
    assert_string_equal(kernel, "one");
    assert_false(fake_is_aborted(fake_newest()));
    fake_end(CUDA_SUCCESS); /* the running one, and the queued one does not start */
    assert_ok(cuStreamSynchronize(mine));
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 1);
    launch(mine); /* the context is healthy */
    assert_int_equal(fake_running(), 2);
}

static void test_the_owner_of_aborted_launches_is_named(void **state)
{
    char kernel[8];
    assert_int_equal(funnelAbortLaunches(0, kernel, sizeof(kernel)), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(funnelAbortLaunches(7, NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* A wait is for the record that there was, whatever becomes of the event. */
static void test_an_event_that_goes_on(void **state)
{
    CUstream a = new_stream(1), b = new_stream(1);
    CUevent event;
    assert_ok(cuEventCreate(&event, 0));
    launch(a);
    assert_ok(cuEventRecord(event, a));
    assert_ok(cuStreamWaitEvent(b, event, 0));
    launch(a);
    assert_ok(cuEventRecord(event, a));
    assert_ok(cuEventDestroy_v2(event));
    launch(b);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 2);
}

static void test_elapsed_time(void **state)
{
    CUevent start, end;
    float ms = -1;
    assert_ok(cuEventCreate(&start, 0));
    assert_ok(cuEventCreate(&end, 0));
    assert_int_equal(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuEventRecord(start, NULL));
    launch(NULL);
    assert_ok(cuEventRecord(end, NULL));
    assert_int_equal(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_NOT_READY);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuEventElapsedTime_v2(&ms, start, end));
    assert_true(ms >= 0);
}

static void count_up(void *user)
{
    __atomic_fetch_add((int *)user, 1, __ATOMIC_SEQ_CST);
}

static void test_host_functions_wait_their_turn(void **state)
{
    CUstream stream = new_stream(1);
    int calls = 0;
    launch(stream);
    for (int i = 0; i < 5; i++)
        assert_ok(cuLaunchHostFunc(stream, count_up, &calls));
    assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 0);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuStreamSynchronize(stream));
    assert_int_equal(calls, 5);
}

static void test_words(void **state)
{
    CUstream a = new_stream(1), b = new_stream(1);
    uint32_t *word;
    assert_ok(cuMemHostAlloc((void **)&word, 64, 0));
    CUdeviceptr address = (uintptr_t)word;
    assert_ok(cuStreamWaitValue32_v2(a, address, 7, CU_STREAM_WAIT_VALUE_GEQ));
    launch(a);
    assert_int_equal(fake_running(), 0);
    launch(b);
    assert_ok(cuStreamWriteValue32_v2(b, address, 8, 0));
    assert_int_equal(*word, 0);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuStreamSynchronize(b));
    assert_int_equal(*word, 8);
    while (fake_running() == 0)
        continue;
    assert_int_equal(cuStreamWriteValue32_v2(b, address + 2, 8, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue32_v2(b, 64, 8, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_every_comparison(void **state)
{
    static const struct {
        uint32_t word, value;
        unsigned flags;
        bool holds;
    } cases[] = {
        {5, 5, CU_STREAM_WAIT_VALUE_GEQ, true},
        {4, 5, CU_STREAM_WAIT_VALUE_GEQ, false},
        {3, 0xfffffff0u, CU_STREAM_WAIT_VALUE_GEQ, true}, /* numbers go round */
        {5, 5, CU_STREAM_WAIT_VALUE_EQ, true},
        {6, 5, CU_STREAM_WAIT_VALUE_EQ, false},
        {6, 2, CU_STREAM_WAIT_VALUE_AND, true},
        {5, 2, CU_STREAM_WAIT_VALUE_AND, false},
        {0xfffffff0u, 0x7, CU_STREAM_WAIT_VALUE_NOR, true},
        {0xfffffff0u, 0xf, CU_STREAM_WAIT_VALUE_NOR, false},
    };
    uint32_t *word;
    assert_ok(cuMemHostAlloc((void **)&word, 64, 0));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CUstream stream = new_stream(1);
        *word = cases[i].word;
        assert_ok(cuStreamWaitValue32_v2(stream, (uintptr_t)word, cases[i].value, cases[i].flags));
        assert_int_equal(cuStreamQuery(stream),
                         cases[i].holds ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
        __atomic_store_n(word, cases[i].flags == CU_STREAM_WAIT_VALUE_NOR ? 0 : cases[i].value,
                         __ATOMIC_SEQ_CST);
        assert_ok(cuStreamSynchronize(stream));
    }
}

static void test_a_destroyed_stream_finishes(void **state)
{
    CUstream stream = new_stream(1);
    launch(stream);
    launch(stream);
    assert_ok(cuStreamDestroy_v2(stream));
    assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 1);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(fake_running(), 0);
}

/* A long queue that ends at once must not become a deep stack. */
static void test_a_long_queue(void **state)
{
    CUstream stream = new_stream(1);
    CUevent event;
    assert_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    launch(stream);
    for (int i = 0; i < 300000; i++)
        assert_ok(cuEventRecord(event, stream));
    fake_end(CUDA_SUCCESS);
    assert_ok(cuStreamQuery(stream));
}

static void test_copies_take_turns(void **state)
{
    CUstream stream = new_stream(1);
    CUdeviceptr memory;
    char text[8] = "before";
    assert_ok(cuMemAlloc_v2(&memory, sizeof(text)));
    launch(stream);
    assert_ok(cuMemcpyHtoDAsync_v2(memory, "during", 7, stream));
    assert_ok(cuMemcpyDtoH_v2(text, memory, sizeof(text)));
    assert_string_equal(text, "");
    fake_end(CUDA_SUCCESS);
    assert_ok(cuMemcpyDtoHAsync_v2(text, memory, sizeof(text), stream));
    assert_ok(cuStreamSynchronize(stream));
    assert_string_equal(text, "during");
}

static void test_resources_of_a_grid(void **state)
{
    CUstream stream;
    CUdevResource all, groups[2];
    CUdevResourceDesc description;
    CUgreenCtx green;
    unsigned count = 2;
    assert_ok(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(all.sm.smCount, 8);
    assert_ok(cuDevSmResourceSplitByCount(groups, &count, &all, NULL,
                                          CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 3));
    assert_int_equal(count, 2);
    assert_ok(cuDevResourceGenerateDesc(&description, &groups[1], 1));
    assert_ok(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    assert_ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, -3));
    assert_ok(cuLaunchKernel(one, 4, 3, 2, 8, 4, 2, 1000, stream, NULL, NULL));
    assert_int_equal(fake_newest()->sm_mask[0], 0xf0);
    assert_int_equal(fake_newest()->priority, -3);
    assert_int_equal(fake_newest()->grid[1], 3);
    assert_int_equal(fake_newest()->block[2], 2);
    assert_int_equal(fake_newest()->dynamic_shared, 1000);
    assert_ok(cuGreenCtxDestroy(green));
}

static void test_shapes_that_cannot_be(void **state)
{
    static const struct {
        unsigned grid, block, shared;
    } shapes[] = {{0, 32, 0}, {1, 0, 0}, {1, 1025, 0}, {0x80000000u, 32, 0}, {1, 32, 49153}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        assert_int_equal(cuLaunchKernel(one, shapes[i].grid, 1, 1, shapes[i].block, 1, 1,
                                        shapes[i].shared, NULL, NULL, NULL),
                         CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLaunchCooperativeKernel(one, 17, 1, 1, 1024, 1, 1, 0, NULL, NULL),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_int_equal(fake_running(), 0);
}

/* The blocks of a cooperative grid may access their barrier while they run. */
static void test_a_cooperative_grid(void **state)
{
    uint64_t place;
    launch(NULL);
    assert_int_equal(fake_newest()->workspace, 0);
    fake_end(CUDA_SUCCESS);
    assert_ok(cuLaunchCooperativeKernel(one, 16, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    assert_true(fake_newest()->cooperative);
    place = fake_newest()->workspace;
    assert_true(fake_space_has(place) && fake_space_has(place + 7));
    fake_end(CUDA_SUCCESS);
    assert_false(fake_space_has(place));
}

static void test_memory_that_kernels_may_touch(void **state)
{
    CUdeviceptr memory;
    char *host, pages[8192];
    assert_ok(cuMemAlloc_v2(&memory, 1000));
    assert_ok(cuMemHostAlloc((void **)&host, 1000, 0));
    assert_true(fake_space_has(memory) && fake_space_has(memory + 999));
    assert_true(fake_space_has((uintptr_t)host));
    assert_false(fake_space_has(memory + 4096));
    assert_false(fake_space_has((uintptr_t)pages));
    assert_ok(cuMemHostRegister_v2(pages, sizeof(pages), 0));
    assert_true(fake_space_has((uintptr_t)pages + 8191));
    assert_ok(cuMemHostUnregister(pages));
    assert_false(fake_space_has((uintptr_t)pages));
    assert_ok(cuMemFree_v2(memory));
    assert_false(fake_space_has(memory));
}

static void test_bad_ptx(void **state)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    char log[100] = "";
    void *values[] = {log, (void *)sizeof(log)};
    CUmodule bad;
    assert_int_equal(cuModuleLoadDataEx(&bad, ".version 9.0 nonsense", 2, options, values),
                     CUDA_ERROR_INVALID_PTX);
    assert_string_equal(log, "line 1: not what the test uses");
}

/* Runs last: the process has lost the device then. */
static void test_a_fault(void **state)
{
    CUstream a = new_stream(1), b = new_stream(1);
    CUdeviceptr memory;
    CUcontext again;
    CUevent event;
    int calls = 0;
    assert_ok(cuEventCreate(&event, 0));
    launch(a);
    launch(a);
    assert_ok(cuLaunchHostFunc(a, count_up, &calls));
    assert_ok(cuEventRecord(event, a));
    launch(b);
    fake_end(CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuStreamSynchronize(a), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemAlloc_v2(&memory, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuLaunchKernel(one, 1, 1, 1, 1, 1, 1, 0, b, NULL, NULL),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_running(), 1); /* what ran in b already */
    assert_int_equal(calls, 0);
    fake_end(CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_ok(cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(cuDevicePrimaryCtxRetain(&again, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_after_another),
        TEST(test_side_by_side),
        TEST(test_legacy_waits_for_blocking),
        TEST(test_blocking_waits_for_legacy),
        TEST(test_legacy_between),
        TEST(test_events),
        TEST(test_the_launches_of_one_owner_are_ended),
        TEST(test_the_owner_of_aborted_launches_is_named),
        TEST(test_an_event_that_goes_on),
        TEST(test_elapsed_time),
        TEST(test_host_functions_wait_their_turn),
        TEST(test_words),
        TEST(test_every_comparison),
        TEST(test_a_destroyed_stream_finishes),
        TEST(test_a_long_queue),
        TEST(test_copies_take_turns),
        TEST(test_resources_of_a_grid),
        TEST(test_shapes_that_cannot_be),
        TEST(test_a_cooperative_grid),
        TEST(test_memory_that_kernels_may_touch),
        TEST(test_bad_ptx),
        cmocka_unit_test_setup(test_a_fault, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
