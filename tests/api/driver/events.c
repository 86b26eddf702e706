/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: recorded, queried, waited for, and the time between them.
 */
#include "check.h"

static CUmodule module;
static CUdeviceptr word;

static void queue_slow(CUstream stream, uint32_t turns)
{
    uint32_t factor = 1, value = 1;
    void *parameters[] = {&word, &factor, &value, &turns};

    launch_one(get_kernel(module, "step"), stream, parameters);
}

static void never_recorded(void)
{
    CUevent event;

    EXPECT(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DEFAULT));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(NULL, event, 0));
    EXPECT(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

static void wait_for_one(void)
{
    CUstream stream;
    CUevent event;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    MUST(cuMemsetD32_v2(word, 0, 1));
    MUST(cuCtxSynchronize());
    queue_slow(stream, SLOW);
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(event));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    IS_TRUE(word_at(word) == 1);
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(stream));
}

/* Who has waited for a stream behind an event finds the event complete. */
static void complete_for_who_waited_behind_it(void)
{
    CUstream stream, behind;
    CUevent event;
    unsigned incomplete = 0;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&behind, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 300; i++) {
        queue_slow(stream, 100);
        MUST(cuEventRecord(event, stream));
        MUST(cuStreamWaitEvent(behind, event, 0));
        MUST(cuStreamSynchronize(behind));
        incomplete += cuEventQuery(event) != CUDA_SUCCESS;
    }
    IS_TRUE(incomplete == 0);
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(behind));
    MUST(cuStreamDestroy_v2(stream));
}

/* Time goes on: a later event is not earlier, and the whole is the sum of its parts. */
static void time_between(void)
{
    CUevent events[3];
    float first = -1, second = -1, both = -1, back = 1;

    for (int i = 0; i < 3; i++)
        MUST(cuEventCreate(&events[i], CU_EVENT_DEFAULT));
    MUST(cuEventRecord(events[0], NULL));
    queue_slow(NULL, SLOW);
    MUST(cuEventRecord(events[1], NULL));
    queue_slow(NULL, SLOW);
    MUST(cuEventRecord(events[2], NULL));
    MUST(cuEventSynchronize(events[2]));
    EXPECT(CUDA_SUCCESS, cuEventElapsedTime_v2(&first, events[0], events[1]));
    EXPECT(CUDA_SUCCESS, cuEventElapsedTime_v2(&second, events[1], events[2]));
    EXPECT(CUDA_SUCCESS, cuEventElapsedTime_v2(&both, events[0], events[2]));
    EXPECT(CUDA_SUCCESS, cuEventElapsedTime(&back, events[2], events[0]));
    IS_TRUE(first > 0 && second > 0);
    IS_TRUE(both >= first && both >= second && both < first + second + 0.1f + both / 100);
    IS_TRUE(back < 0);
    for (int i = 0; i < 3; i++)
        MUST(cuEventDestroy_v2(events[i]));
}

static void times_that_cannot_be_had(void)
{
    CUevent timed, never, untimed;
    float time;

    MUST(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&never, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(timed, NULL));
    MUST(cuEventRecord(untimed, NULL));
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, timed, never));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&time, timed, untimed));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&never, 0x100));
    MUST(cuEventDestroy_v2(timed));
    MUST(cuEventDestroy_v2(untimed));
}

/* An event can be recorded in streams of its own context alone, and waited for in all. */
static void events_of_another_context(void)
{
    CUcontext before, context;
    CUevent event, other, start, stop;
    CUstream stream, elsewhere;
    CUdevice device;
    CUgraph graph;
    float ms;

    MUST(cuCtxGetCurrent(&before));
    MUST(cuCtxGetDevice(&device));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxCreate_v2(&context, 0, device));
    MUST(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, elsewhere));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecordWithFlags(other, stream, 0));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, NULL));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, CU_STREAM_PER_THREAD));
    EXPECT(CUDA_SUCCESS, cuEventRecord(other, NULL));
    EXPECT(CUDA_SUCCESS, cuEventRecord(other, CU_STREAM_PER_THREAD));
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, stream));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(elsewhere, event, 0));
    MUST(cuStreamBeginCapture_v2(elsewhere, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, elsewhere));
    EXPECT(CUDA_SUCCESS, cuEventRecordWithFlags(event, elsewhere, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamEndCapture(elsewhere, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    MUST(cuEventRecord(stop, elsewhere));
    MUST(cuCtxSetCurrent(before));
    MUST(cuEventCreate(&start, CU_EVENT_DEFAULT));
    MUST(cuEventRecord(start, stream));
    MUST(cuEventSynchronize(start));
    MUST(cuEventSynchronize(stop));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, start, stop));
    MUST(cuEventDestroy_v2(start));
    MUST(cuCtxDestroy_v2(context));
    MUST(cuCtxSetCurrent(before));
    EXPECT(CUDA_SUCCESS, cuEventRecord(event, NULL));
    MUST(cuEventDestroy_v2(event));
    MUST(cuStreamDestroy_v2(stream));
}

static void many_events(void)
{
    enum { COUNT = 3000 };
    static CUevent events[COUNT];

    for (int i = 0; i < COUNT; i++) {
        MUST(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
        MUST(cuEventRecord(events[i], NULL));
    }
    EXPECT(CUDA_SUCCESS, cuEventSynchronize(events[COUNT - 1]));
    for (int i = 0; i < COUNT; i++) {
        EXPECT(CUDA_SUCCESS, cuEventQuery(events[i]));
        MUST(cuEventDestroy_v2(events[i]));
    }
}

int main(void)
{
    check_open();
    module = load_kernels();
    word = make_words(1, 0);
    RUN(never_recorded);
    RUN(wait_for_one);
    RUN(complete_for_who_waited_behind_it);
    RUN(time_between);
    RUN(times_that_cannot_be_had);
    RUN(events_of_another_context);
    RUN(many_events);
    return check_close();
}
