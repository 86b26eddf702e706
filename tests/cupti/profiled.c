/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that profiles itself with CUPTI, against NVIDIA's headers: the same source runs with
 * NVIDIA's library. It prints what the records say, and no time, address or id.
 *
 *     profiled work       each kind of record
 *     profiled graph      nodes of a graph, or the graph as a whole
 *     profiled threads    that records of threads have the numbers of their own calls
 *     profiled many       more launches than any queue has space for
 *     profiled callbacks  the callback interface
 *     profiled clock      times in a clock of the program
 *     profiled refused    errors
 *     profiled period     buffers that come back without a flush
 *     profiled lost       no buffer when records come
 *     profiled overhead   that a flush has a record
 *     profiled moved      goes on when a line of input says that its server has ended
 */
#include <cupti.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "collect.h"

#define THREADS 4u
#define LAUNCHES 50u
#define MANY 6000u
#define LARGE (5u << 20)

/* As long as the names of C++ templates are. */
#define LONG_NAME                                                                                  \
    "a_kernel_with_a_name_that_is_as_long_as_those_of_kernels_which_templates_make_when_they_are_" \
    "given_types_of_functors_with_several_parameters_and_more_than_one_namespace_around_them"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry " LONG_NAME "(.param .u64 p)\n"
                          "{\n.shared .align 4 .b8 own[64];\n.reg .b64 %a;\n.reg .b32 %v;\n"
                          "ld.param.u64 %a, [p];\nmov.u32 %v, 7;\nst.global.u32 [%a], %v;\n"
                          "st.shared.u32 [own], %v;\nret;\n}\n"
                          ".visible .entry small(.param .u64 p)\n{\nret;\n}\n";

static CUfunction long_kernel, small_kernel;
static CUdeviceptr memory;
static void enable_all(int on)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    };

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        MUST(on ? cuptiActivityEnable(kinds[i]) : cuptiActivityDisable(kinds[i]));
}

/* ---- the driver ---- */

static void begin(void)
{
    CUcontext context;
    CUmodule module;
    CUdevice device;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&long_kernel, module, LONG_NAME));
    MUST(cuModuleGetFunction(&small_kernel, module, "small"));
    MUST(cuMemAlloc(&memory, LARGE));
}

static void launch(CUfunction kernel, unsigned grid, unsigned block, unsigned shared)
{
    void *parameters[] = {&memory};

    MUST(cuLaunchKernel(kernel, grid, 2, 1, block, 1, 1, shared, NULL, parameters, NULL));
}

/* ---- what the records say ---- */

static const CUpti_ActivityAPI *call_of(uint32_t correlation)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityAPI *call = (const void *)records[i];
        if (call->kind == CUPTI_ACTIVITY_KIND_DRIVER && call->correlationId == correlation)
            return call;
    }
    return NULL;
}

static const char *name_of(uint32_t correlation)
{
    const CUpti_ActivityAPI *call = call_of(correlation);
    const char *name = "no call";

    if (call)
        MUST(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name));
    return name;
}

static uint64_t external_of(uint32_t correlation)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityExternalCorrelation *one = (const void *)records[i];
        if (one->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
            one->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 &&
            one->correlationId == correlation)
            return one->externalId;
    }
    return 0;
}

static void print_kernel(const CUpti_ActivityKernel9 *kernel)
{
    printf("kernel %s grid %d,%d,%d block %d shared %d+%d registers %s from %s in %llu\n",
           kernel->name, kernel->gridX, kernel->gridY, kernel->gridZ, kernel->blockX,
           kernel->staticSharedMemory, kernel->dynamicSharedMemory,
           kernel->registersPerThread ? "some" : "none", name_of(kernel->correlationId),
           (unsigned long long)external_of(kernel->correlationId));
    check(kernel->start && kernel->start <= kernel->end, "a kernel ends before it starts");
}

static void print_record(const CUpti_Activity *record)
{
    const CUpti_ActivityMemcpy5 *copy = (const void *)record;
    const CUpti_ActivityMemset4 *set = (const void *)record;
    const CUpti_ActivitySynchronization *wait = (const void *)record;

    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        print_kernel((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        printf("copy kind %d of %llu from %s in %llu\n", copy->copyKind,
               (unsigned long long)copy->bytes, name_of(copy->correlationId),
               (unsigned long long)external_of(copy->correlationId));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        printf("memset of %llu to %u from %s\n", (unsigned long long)set->bytes, set->value,
               name_of(set->correlationId));
    else if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
        printf("wait type %d from %s\n", wait->type, name_of(wait->correlationId));
}

/* ---- the tests ---- */

static _Alignas(4096) unsigned char registered[8192];

static void do_work(const void *bytes, void *into)
{
    MUST(cuMemHostRegister_v2(registered, sizeof(registered), 0));
    MUST(cuMemcpyHtoD(memory, bytes, 4096));
    MUST(cuMemcpyHtoD(memory, bytes, LARGE));
    MUST(cuMemcpyHtoDAsync(memory, registered, sizeof(registered), NULL));
    MUST(cuMemsetD8(memory, 3, 1024));
    launch(long_kernel, 3, 32, 128);
    launch(small_kernel, 1, 1, 0);
    MUST(cuMemcpyDtoHAsync(registered, memory, 4096, NULL));
    MUST(cuMemcpyDtoH(into, memory, LARGE));
    MUST(cuCtxSynchronize());
}

/* The ids of a call come before its record. */
static void check_order(void)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityExternalCorrelation *one = (const void *)records[i];
        for (unsigned j = 0; one->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION && j < i; j++) {
            const CUpti_ActivityAPI *call = (const void *)records[j];
            check(call->kind != CUPTI_ACTIVITY_KIND_DRIVER ||
                      call->correlationId != one->correlationId,
                  "a call is before its ids");
        }
    }
}

static void test_work(void)
{
    void *bytes = calloc(1, LARGE), *into = calloc(1, LARGE);
    uint64_t last;

    MUST(cuptiActivityRegisterCallbacks(request, complete));
    enable_all(1);
    begin();
    MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77));
    do_work(bytes, into);
    MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
    printf("popped %llu\n", (unsigned long long)last);
    enable_all(0);
    launch(long_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    flush();
    check_order();
    for (unsigned i = 0; i < record_count; i++)
        print_record(records[i]);
    enable_all(1);
    launch(small_kernel, 9, 1, 0);
    MUST(cuCtxSynchronize());
    record_count = 0;
    flush();
    printf("again: %u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static CUgraphExec make_graph(CUstream stream)
{
    void *parameters[] = {&memory};
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuLaunchKernel(long_kernel, 3, 2, 1, 32, 1, 1, 128, stream, parameters, NULL));
    MUST(cuMemsetD8Async(memory, 5, 512, stream));
    MUST(cuLaunchKernel(small_kernel, 1, 2, 1, 1, 1, 1, 0, stream, parameters, NULL));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* Each record of a node has the number of the graph that was launched. */
static void check_graph(CUgraphExec exec)
{
    uint32_t id = 0;

    MUST(cuptiGetGraphExecId(exec, &id));
    check(id != 0, "the graph's number");
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel9 *kernel = (const void *)records[i];
        const CUpti_ActivityGraphTrace *graph = (const void *)records[i];
        if (kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            check(kernel->graphId == id, "the graph's number of a kernel");
        if (graph->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
            check(graph->graphId == id, "the graph's number of a launch");
    }
}

static void launch_graph(CUgraphExec exec, CUstream stream)
{
    record_count = 0;
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    flush();
    check_graph(exec);
}

static void test_graph(void)
{
    CUgraphExec exec;
    CUstream stream;

    MUST(cuptiActivityRegisterCallbacks(request, complete));
    enable_all(1);
    begin();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    exec = make_graph(stream);
    launch_graph(exec, stream);
    for (unsigned i = 0; i < record_count; i++)
        print_record(records[i]);
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
    exec = make_graph(stream); /* NVIDIA's library fails on those that are older than GRAPH_TRACE */
    launch_graph(exec, stream);
    printf("%u graphs, %u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE),
           count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static void *launch_some(void *number)
{
    CUcontext context;

    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    for (unsigned i = 0; i < LAUNCHES; i++) {
        MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                    (uintptr_t)number * 1000 + i));
        launch(small_kernel, (unsigned)(uintptr_t)number, i + 1, 0);
        MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL));
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    unsigned right = 0;

    begin();
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    enable_all(1);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, launch_some, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MUST(cuCtxSynchronize());
    flush();
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel9 *kernel = (const void *)records[i];
        if (kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            right += external_of(kernel->correlationId) ==
                     (uint64_t)kernel->gridX * 1000 + (uint64_t)kernel->blockX - 1;
    }
    printf("%u kernels, %u with the number of their call\n",
           count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), right);
}

static void test_many(void)
{
    begin();
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuptiActivityEnableLatencyTimestamps(1));
    for (unsigned i = 0; i < MANY; i++)
        launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    while (!record_count) /* full buffers come back without a flush */
        MUST(cuCtxSynchronize());
    flush();
    printf("%u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel9 *kernel = (const void *)records[i];
        if (kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            check(kernel->submitted && kernel->submitted <= kernel->start, "a time of submission");
    }
}

/* Records come back without a flush, with a call after the period. */
static void test_period(void)
{
    begin();
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityFlushPeriod(1));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    while (!record_count)
        MUST(cuCtxSynchronize());
    printf("%u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static unsigned entered, left, contexts, streams, waits;
static int uses_stream; /* NVIDIA's driver makes streams with a context, too */

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_CallbackData *call = data;

    check(user == (void *)&entered, "the user's pointer");
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED)
        contexts++;
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        streams += ((const CUpti_ResourceData *)data)->resourceHandle.stream && uses_stream;
    else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE)
        waits++;
    else if (call->callbackSite == CUPTI_API_ENTER)
        *call->correlationData = ++entered;
    else
        left += *call->correlationData == entered && *(CUresult *)call->functionReturnValue == 0;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API)
        return;
    check(!strcmp(call->functionName, "cuLaunchKernel"), call->functionName);
    check(call->symbolName && !strcmp(call->symbolName, "small"), "the kernel's name");
    check(((const cuLaunchKernel_params *)call->functionParams)->f == small_kernel, "the kernel");
}

/* Of which the first has a name. */
static void check_second_subscriber(void)
{
    char before[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    CUpti_SubscriberParams parameters = {
        .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
        .oldSubscriberName = before,
        .oldSubscriberSize = sizeof(before),
    };
    CUpti_SubscriberHandle other;

    check(cuptiSubscribe(&other, on_callback, NULL) ==
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
          "a second subscriber");
    check(cuptiSubscribe_v2(&other, on_callback, NULL, &parameters) ==
                  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED &&
              strstr(before, "the test"),
          "the name of the first subscriber");
    parameters.structSize = 0;
    check(cuptiSubscribe_v2(&other, on_callback, NULL, &parameters) ==
              CUPTI_ERROR_INVALID_PARAMETER,
          "parameters without a size");
}

static void test_callbacks(void)
{
    CUpti_SubscriberParams parameters = {
        .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
        .subscriberName = "the test",
    };
    CUpti_SubscriberHandle subscriber;
    CUstream stream;

    MUST(cuptiSubscribe_v2(&subscriber, on_callback, &entered, &parameters));
    check_second_subscriber();
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                             CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                             CUPTI_CBID_RESOURCE_CONTEXT_CREATED));
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                             CUPTI_CBID_RESOURCE_STREAM_CREATED));
    MUST(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                             CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    begin();
    uses_stream = 1;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamDestroy(stream));
    uses_stream = 0;
    launch(small_kernel, 1, 1, 0);
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    MUST(cuptiUnsubscribe(subscriber));
    launch(small_kernel, 1, 1, 0);
    printf("%u entered, %u left, %u contexts, %u streams, %u waits\n", entered, left, contexts,
           streams, waits);
}

/* Three for each nanosecond. */
static uint64_t CUPTIAPI own_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 3;
}

/* The slack is for the rate of the clock, measured over the time of this program. */
static void test_clock(void)
{
    const uint64_t slack = 3ull * 1000000000;
    uint64_t before, after, now;

    begin();
    MUST(cuptiActivityRegisterTimestampCallback(own_clock));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    enable_all(1);
    before = own_clock();
    MUST(cuptiGetTimestamp(&now));
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    after = own_clock();
    check(now >= before && now <= after, "the timestamp");
    flush();
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityKernel9 *kernel = (const void *)records[i];
        if (kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            check(kernel->start + slack > before && kernel->end < after + slack, "a kernel's time");
    }
    printf("%u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static void CUPTIAPI give_none(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = NULL;
    *size = *max_records = 0;
}

static void test_lost(void)
{
    size_t dropped = 0;

    begin();
    MUST(cuptiActivityRegisterCallbacks(give_none, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    MUST(cuptiActivityFlushAll(0));
    MUST(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    printf("%s\n", dropped && !record_count ? "lost" : "kept");
}

/* A flush is recorded when it has ended, so the next one brings it. */
static void test_overhead(void)
{
    begin();
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD));
    for (unsigned i = 0; i < 2; i++) {
        launch(small_kernel, 1, 1, 0);
        MUST(cuCtxSynchronize());
        MUST(cuptiActivityFlushAll(0));
    }
    printf("%s\n", count_kind(CUPTI_ACTIVITY_KIND_OVERHEAD) ? "some" : "none");
}

static void test_moved(void)
{
    unsigned before;

    begin();
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    MUST(cuptiActivityFlushAll(0));
    printf("%u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    fflush(stdout);
    getchar();
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    MUST(cuptiActivityFlushAll(0));
    before = count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    launch(small_kernel, 1, 1, 0);
    MUST(cuCtxSynchronize());
    MUST(cuptiActivityFlushAll(0));
    printf("%u more\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) - before);
}

static void test_refused(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig counter = {
        .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
        .kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        .enable = 1,
    };
    const char *name = NULL;
    uint32_t version = 0;

    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NAME));
    printf("%d\n", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    printf("%d\n", cuptiActivityConfigureUnifiedMemoryCounter(&counter, 1));
    printf("%d\n", cuptiActivityRegisterCallbacks(NULL, complete));
    printf("%d\n",
           cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL));
    printf("%d\n", cuptiUnsubscribe(NULL));
    MUST(cuptiGetVersion(&version));
    check(version == CUPTI_API_VERSION, "the version");
    MUST(cuptiGetResultString(CUPTI_ERROR_NOT_SUPPORTED, &name));
    printf("%s\n", name);
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"work", test_work},       {"graph", test_graph},         {"threads", test_threads},
    {"many", test_many},       {"callbacks", test_callbacks}, {"clock", test_clock},
    {"refused", test_refused}, {"moved", test_moved},         {"period", test_period},
    {"lost", test_lost},       {"overhead", test_overhead},
};

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++)
        if (argc == 2 && !strcmp(argv[1], tests[i].name)) {
            tests[i].run();
            return 0;
        }
    fprintf(stderr, "usage: profiled "
                    "work|graph|threads|many|callbacks|clock|refused|moved|period|lost|overhead\n");
    return 2;
}
