/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that traces itself as XLA's profiler does. It makes the same calls of CUPTI in the same
 * order, and the first that fails ends a trace. Its callback asks for the device of the context,
 * keeps the time of the beginning, and reads the arguments when the call has returned. Threads work
 * before and while it traces; two traces follow each other. Prints what it has seen.
 */
#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_SIZE (64u << 10)
#define SIZE 4096u
#define THREADS 3u
#define TRACES 2u

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry kernel(.param .u64 p)\n{\nret;\n}\n";

static const CUpti_CallbackId traced_calls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,       CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,   CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,     CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,         CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
};
static const CUpti_CallbackId traced_resources[] = {
    CUPTI_CBID_RESOURCE_GRAPH_CREATED,     CUPTI_CBID_RESOURCE_GRAPH_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
};
static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_OVERHEAD,          CUPTI_ACTIVITY_KIND_MEMSET,
};

static CUcontext context;
static CUfunction kernel;
static CUdeviceptr memory[THREADS];
static pthread_barrier_t between;
static atomic_uint entered, left, wrong, kernels, copies, memsets;

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MUST(call) must((int)(call), #call, __LINE__)

static void must(int result, const char *call, int line)
{
    if (result == 0)
        return;
    printf("line %d: %s gave %d\n", line, call, result);
    fflush(stdout);
    _Exit(1);
}

static void check(int condition, const char *text)
{
    if (!condition && !atomic_fetch_add(&wrong, 1))
        printf("wrong: %s\n", text);
}

/* ---- the callback ---- */

static void check_arguments(CUpti_CallbackId cbid, const void *arguments)
{
    const cuLaunchKernel_params *launch = arguments;
    const cuMemcpyHtoDAsync_v2_params *copy = arguments;
    const cuMemsetD8Async_params *set = arguments;
    const cuMemAlloc_v2_params *allocate = arguments;

    check(arguments != NULL, "no arguments");
    if (!arguments)
        return;
    if (cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
        check(launch->f == kernel && launch->gridDimY == 2 && launch->blockDimX == 32 &&
                  launch->kernelParams && !launch->extra,
              "the arguments of a launch");
    else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2)
        check(copy->ByteCount == SIZE && copy->srcHost && copy->hStream, "the arguments of a copy");
    else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async)
        check(set->uc == 3 && set->N == SIZE / 2 && set->hStream, "the arguments of a memset");
    else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2)
        check(allocate->bytesize == SIZE && *allocate->dptr, "the arguments of an allocation");
}

static void check_call(CUpti_CallbackId cbid, const CUpti_CallbackData *call)
{
    uint32_t device = UINT32_MAX, id = 0;
    uint64_t now = 0;

    check(call->context == context, "the context");
    MUST(cuptiGetDeviceId(call->context, &device));
    MUST(cuptiGetContextId(call->context, &id));
    MUST(cuptiGetTimestamp(&now));
    check(device == 0 && id == call->contextUid, "the device or the context's id");
    if (call->callbackSite == CUPTI_API_ENTER) {
        *call->correlationData = now;
        atomic_fetch_add(&entered, 1);
        return;
    }
    check(*call->correlationData && *call->correlationData <= now, "the time of the beginning");
    check_arguments(cbid, call->functionParams);
    atomic_fetch_add(&left, 1);
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        check_call(cbid, data);
}

/* ---- the trace ---- */

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = BUFFER_SIZE;
    *max_records = 0;
}

static void CUPTIAPI complete(CUcontext of, uint32_t stream, uint8_t *buffer, size_t size,
                              size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;

    MUST(cuptiActivityGetNumDroppedRecords(of, stream, &dropped));
    check(!dropped, "records were dropped");
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        copies += record->kind == CUPTI_ACTIVITY_KIND_MEMCPY;
        memsets += record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
    }
    free(buffer);
}

static void switch_callbacks(CUpti_SubscriberHandle subscriber, uint32_t on)
{
    for (unsigned i = 0; i < COUNT(traced_resources); i++)
        MUST(cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_RESOURCE, traced_resources[i]));
    for (unsigned i = 0; i < COUNT(traced_calls); i++)
        MUST(cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, traced_calls[i]));
}

static CUpti_SubscriberHandle begin_trace(void)
{
    CUpti_SubscriberHandle subscriber;
    size_t size = sizeof(uint8_t);
    uint8_t on = 1;

    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    switch_callbacks(subscriber, 1);
    MUST(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    MUST(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &on));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    for (unsigned i = 0; i < COUNT(kinds); i++)
        MUST(cuptiActivityEnable(kinds[i]));
    return subscriber;
}

static void end_trace(CUpti_SubscriberHandle subscriber)
{
    switch_callbacks(subscriber, 0);
    MUST(cuptiUnsubscribe(subscriber));
    for (unsigned i = 1; i < COUNT(kinds); i++) /* the kernels remain on */
        MUST(cuptiActivityDisable(kinds[i]));
    MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    MUST(cuptiFinalize());
}

/* ---- the work ---- */

static void work(CUdeviceptr at, CUstream stream)
{
    void *parameters[] = {&at};
    char bytes[SIZE] = {0};
    CUdeviceptr more;

    MUST(cuMemcpyHtoDAsync(at, bytes, SIZE, stream));
    MUST(cuMemsetD8Async(at, 3, SIZE / 2, stream));
    MUST(cuLaunchKernel(kernel, 1, 2, 1, 32, 1, 1, 0, stream, parameters, NULL));
    MUST(cuMemcpyDtoHAsync(bytes, at, SIZE, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemAlloc(&more, SIZE));
    MUST(cuMemFree(more));
    check(bytes[0] == 3 && bytes[SIZE - 1] == 0, "the result");
}

static void *run_thread(void *argument)
{
    CUdeviceptr at = *(CUdeviceptr *)argument;
    CUstream stream;

    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < TRACES; i++) {
        work(at, stream); /* not traced */
        pthread_barrier_wait(&between);
        pthread_barrier_wait(&between);
        work(at, stream);
        pthread_barrier_wait(&between);
        pthread_barrier_wait(&between);
    }
    return NULL;
}

static void begin(void)
{
    CUmodule module;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&kernel, module, "kernel"));
    for (unsigned i = 0; i < THREADS; i++)
        MUST(cuMemAlloc(&memory[i], SIZE));
    MUST(cuCtxSetCurrent(NULL)); /* the thread that traces works in no context */
}

static void trace(void)
{
    CUpti_SubscriberHandle subscriber;

    pthread_barrier_wait(&between);
    subscriber = begin_trace();
    pthread_barrier_wait(&between);
    pthread_barrier_wait(&between);
    end_trace(subscriber);
    printf("%u entered, %u left, %u kernels, %u copies, %u memsets\n", entered, left, kernels,
           copies, memsets);
    pthread_barrier_wait(&between);
}

int main(void)
{
    pthread_t threads[THREADS];

    begin();
    MUST(pthread_barrier_init(&between, NULL, THREADS + 1));
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, run_thread, &memory[i]));
    for (unsigned i = 0; i < TRACES; i++)
        trace();
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL));
    return 0;
}
