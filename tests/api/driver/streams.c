/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for what: the legacy default stream against blocking and non-blocking streams, the
 * per-thread default stream, events between streams. All told by the data, never by the clock.
 */
#include "check.h"

#include <stdlib.h>

static CUmodule module;
static CUdeviceptr word;

/* word = word * factor + value, after a while. */
static void queue_step(CUstream stream, uint32_t factor, uint32_t value, uint32_t turns)
{
    void *parameters[] = {&word, &factor, &value, &turns};

    launch_one(get_kernel(module, "step"), stream, parameters);
}

static void start_at(uint32_t value)
{
    MUST(cuMemsetD32_v2(word, value, 1));
    MUST(cuCtxSynchronize());
}

static void a_stream_keeps_its_order(void)
{
    CUstream stream;
    uint32_t expected = 1;

    start_at(1);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t i = 0; i < 200; i++) {
        queue_step(stream, 3, i, i % 16 == 0 ? SLOW / 10 : 0);
        expected = expected * 3 + i;
    }
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(word_at(word) == expected);
    EXPECT(CUDA_SUCCESS, cuStreamQuery(stream));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

/* Work on the default stream waits for the blocking streams, and they for it. */
static void the_legacy_stream_orders_blocking_streams(void)
{
    CUstream a, b;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    MUST(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    queue_step(a, 10, 2, SLOW);
    queue_step(NULL, 10, 3, SLOW);
    queue_step(b, 10, 4, SLOW);
    queue_step(CU_STREAM_LEGACY, 10, 5, 0);
    queue_step(a, 10, 6, 0);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(word) == 123456);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(b));
}

static void the_per_thread_stream_is_a_blocking_one(void)
{
    CUstream a;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    queue_step(CU_STREAM_PER_THREAD, 10, 2, SLOW);
    queue_step(NULL, 10, 3, SLOW);
    queue_step(CU_STREAM_PER_THREAD, 10, 4, 0);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(CU_STREAM_PER_THREAD));
    IS_TRUE(word_at(word) == 1234);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
}

/* What the default stream has waited for needs no wait of its own. */
static void a_wait_for_the_legacy_stream_covers_blocking_streams(void)
{
    CUstream a;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    queue_step(a, 10, 2, SLOW);
    queue_step(CU_STREAM_PER_THREAD, 1, 0, SLOW);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(NULL));
    EXPECT(CUDA_SUCCESS, cuStreamQuery(a));
    EXPECT(CUDA_SUCCESS, cuStreamQuery(CU_STREAM_PER_THREAD));
    queue_step(a, 10, 3, SLOW);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(a));
    EXPECT(CUDA_SUCCESS, cuStreamQuery(a));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
}

/* A synchronous copy is work on the default stream. */
static void copies_wait_too(void)
{
    CUstream a;
    uint32_t value = 0;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    queue_step(a, 10, 2, SLOW);
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(&value, word, sizeof(value)));
    IS_TRUE(value == 12);
    queue_step(a, 10, 3, SLOW);
    MUST(cuMemsetD32_v2(word, 5, 1));
    queue_step(a, 10, 4, 0);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(word) == 54);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
}

/* A non-blocking stream can be waited on alone; its work is held back by an event only. */
static void events_between_streams(void)
{
    CUstream a, b;
    CUevent event;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    queue_step(a, 10, 2, SLOW);
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, a));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(b, event, 0));
    queue_step(b, 10, 3, SLOW);
    /* The event may be recorded anew while a wait for its first record is pending. */
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, b));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(a, event, 0));
    queue_step(a, 10, 4, 0);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(a));
    IS_TRUE(word_at(word) == 1234);
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(b));
}

/* Destroying a stream or an event does not throw away what was queued. */
static void destroyed_while_busy(void)
{
    CUstream a, b;
    CUevent event;

    start_at(1);
    MUST(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    queue_step(a, 10, 2, SLOW);
    MUST(cuEventRecord(event, a));
    MUST(cuStreamWaitEvent(b, event, 0));
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(a));
    queue_step(b, 10, 3, 0);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(b));
    IS_TRUE(word_at(word) == 123);
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(b));
}

/* The context waits for what its destroyed streams still have to do. */
static void the_context_waits_for_destroyed_streams(void)
{
    uint32_t *seen, factor = 0, value = 7, turns = SLOW;
    CUdeviceptr address;
    CUstream stream;

    MUST(cuMemHostAlloc((void **)&seen, sizeof(*seen), CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer_v2(&address, seen, 0));
    for (int round = 0; round < 10; round++) {
        void *parameters[] = {&address, &factor, &value, &turns};

        *seen = 0;
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        launch_one(get_kernel(module, "step"), stream, parameters);
        EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
        EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
        IS_TRUE(*(volatile uint32_t *)seen == 7);
    }
    MUST(cuMemFreeHost(seen));
}

/* What a device cannot do is refused at once, and nothing on the stream waits for it. */
static void waits_that_flush(void)
{
    CUdevice device;
    CUstream stream;
    int can = 0;

    start_at(1);
    MUST(cuCtxGetDevice(&device));
    MUST(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, device));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(can ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
           cuStreamWaitValue32_v2(stream, word, 1,
                                  CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

static void CUDA_CB count_up(void *count)
{
    ++*(int *)count;
}

/* All of these have a handle that tells the context. */
static void use_of_handles(CUstream stream, CUevent event, CUcontext expected)
{
    CUcontext context = NULL;
    CUfunction step = NULL;
    CUdeviceptr memory;
    int value = 0, count = 0;
    size_t size;

    EXPECT(CUDA_SUCCESS, cuModuleGetFunction(&step, module, "step"));
    EXPECT(CUDA_SUCCESS, cuModuleGetGlobal_v2(&memory, &size, module, "counter"));
    EXPECT(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, step));
    queue_step(stream, 10, 2, SLOW);
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(stream, event, 0));
    EXPECT(CUDA_SUCCESS, cuLaunchHostFunc(stream, count_up, &count));
    EXPECT(CUDA_SUCCESS, cuMemAllocAsync(&memory, 64, stream));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(memory, word, 4, stream));
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(word, 0, 1, stream));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(word, memory, 4, stream));
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(memory, stream));
    EXPECT(CUDA_SUCCESS, cuStreamGetCtx(stream, &context));
    IS_TRUE(context == expected);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuStreamQuery(stream));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    IS_TRUE(count == 1);
}

/* The context is current in no thread then. */
static void streams_need_no_current_context(void)
{
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUgraph graph;

    start_at(1);
    MUST(cuCtxGetCurrent(&context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuCtxSetCurrent(NULL));
    use_of_handles(stream, event, context);
    EXPECT(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuEventRecord(event, NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuStreamWaitEvent(NULL, event, 0));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
    EXPECT(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
    MUST(cuCtxSetCurrent(context));
    MUST(cuGraphDestroy(graph));
    IS_TRUE(word_at(word) == 12);
}

static void flags_and_priorities(void)
{
    CUstream plain, high;
    unsigned flags = 99;
    unsigned long long id = 0, other_id = 0;
    int least = 0, greatest = 0, priority = 99;
    CUcontext context, of_stream = NULL;

    MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
    MUST(cuStreamCreate(&plain, CU_STREAM_DEFAULT));
    MUST(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest));
    EXPECT(CUDA_SUCCESS, cuStreamGetFlags(plain, &flags));
    IS_TRUE(flags == CU_STREAM_DEFAULT);
    EXPECT(CUDA_SUCCESS, cuStreamGetFlags(high, &flags));
    IS_TRUE(flags == CU_STREAM_NON_BLOCKING);
    EXPECT(CUDA_SUCCESS, cuStreamGetPriority(high, &priority));
    IS_TRUE(priority == greatest);
    EXPECT(CUDA_SUCCESS, cuStreamGetPriority(plain, &priority));
    IS_TRUE(priority == 0);
    EXPECT(CUDA_SUCCESS, cuStreamGetId(plain, &id));
    EXPECT(CUDA_SUCCESS, cuStreamGetId(high, &other_id));
    IS_TRUE(id != other_id);
    MUST(cuCtxGetCurrent(&context));
    EXPECT(CUDA_SUCCESS, cuStreamGetCtx(plain, &of_stream));
    IS_TRUE(of_stream == context);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&plain, 77));
    MUST(cuStreamDestroy_v2(high));
}

static void many_streams(void)
{
    enum { COUNT = 64 };
    CUstream streams[COUNT];
    CUfunction slow_add = get_kernel(module, "slow_add");
    CUdeviceptr words = make_words(COUNT * 64, 0);
    uint32_t n = 64, turns = 1000;
    bool right = true;

    for (int i = 0; i < COUNT; i++)
        MUST(cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    MUST(cuCtxSynchronize());
    for (uint32_t round = 1; round <= 5; round++) {
        for (int i = 0; i < COUNT; i++) {
            CUdeviceptr part = words + i * 64 * sizeof(uint32_t);
            void *parameters[] = {&part, &round, &n, &turns};

            MUST(cuLaunchKernel(slow_add, 1, 1, 1, 32, 1, 1, 0, streams[i], parameters, NULL));
        }
    }
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    for (int i = 0; i < COUNT; i++) {
        right &= words_are(words + i * 64 * sizeof(uint32_t), 64, 15);
        MUST(cuStreamDestroy_v2(streams[i]));
    }
    IS_TRUE(right);
    MUST(cuMemFree_v2(words));
}

int main(void)
{
    check_open();
    module = load_kernels();
    word = make_words(1, 0);
    RUN(a_stream_keeps_its_order);
    RUN(the_legacy_stream_orders_blocking_streams);
    RUN(the_per_thread_stream_is_a_blocking_one);
    RUN(a_wait_for_the_legacy_stream_covers_blocking_streams);
    RUN(copies_wait_too);
    RUN(events_between_streams);
    RUN(destroyed_while_busy);
    RUN(the_context_waits_for_destroyed_streams);
    RUN(waits_that_flush);
    RUN(streams_need_no_current_context);
    RUN(flags_and_priorities);
    RUN(many_streams);
    return check_close();
}
