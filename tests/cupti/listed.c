/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that profiles itself with CUPTI: what it makes, and what it records without work of a
 * device. Prints what the records of devices, contexts, streams, events, memory and pools say, and
 * no time, address or id.
 */
#include <cupti.h>
#include <string.h>

#include "collect.h"

#define POOL_BYTES (1u << 20)

static CUstream stream;
static CUevent event;

static void enable_kinds(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_DEVICE,      CUPTI_ACTIVITY_KIND_CONTEXT,
        CUPTI_ACTIVITY_KIND_STREAM,      CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        CUPTI_ACTIVITY_KIND_MEMORY2,     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        CUPTI_ACTIVITY_KIND_MEMORY_POOL, CUPTI_ACTIVITY_KIND_DRIVER,
    };

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        MUST(cuptiActivityEnable(kinds[i]));
}

/* A tool may enable kinds where it is asked for a buffer: here for each of the first records. That
 * of overhead is none of them. NVIDIA's library records the request for a buffer as overhead, and
 * asks for a buffer for that record. When a buffer takes one record, that has no end. */
static void CUPTIAPI request_and_enable(uint8_t **buffer, size_t *size, size_t *max_records)
{
    static const CUpti_ActivityKind unused[] = {
        CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER_DATA, CUPTI_ACTIVITY_KIND_NAME};
    static unsigned requests;

    if (requests < sizeof(unused) / sizeof(*unused))
        MUST(cuptiActivityEnable(unused[requests++]));
    request(buffer, size, max_records);
    *max_records = 1;
}

/* ---- what the program does ---- */

static void begin(void)
{
    CUcontext context;
    int least, greatest;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
    MUST(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
}

static void use_memory(void)
{
    CUdeviceptr device, pitched, managed;
    size_t pitch;
    void *host;

    MUST(cuMemAlloc(&device, 4096));
    MUST(cuMemAllocPitch(&pitched, &pitch, 100, 3, 4));
    MUST(cuMemAllocManaged(&managed, 8192, CU_MEM_ATTACH_GLOBAL));
    MUST(cuMemHostAlloc(&host, 1024, 0));
    MUST(cuMemFree(device));
    MUST(cuMemFree(pitched));
    MUST(cuMemFree(managed));
    MUST(cuMemFreeHost(host));
    MUST(cuMemFree(0));
}

static void use_pools(void)
{
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    CUmemoryPool pool;
    CUdeviceptr first, second;

    MUST(cuMemPoolCreate(&pool, &properties));
    MUST(cuMemAllocAsync(&first, 2048, stream));
    MUST(cuMemAllocFromPoolAsync(&second, POOL_BYTES, pool, stream));
    MUST(cuMemFreeAsync(first, stream));
    MUST(cuMemFreeAsync(second, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemPoolDestroy(pool));
}

static void use_events(void)
{
    MUST(cuEventRecord(event, stream));
    MUST(cuEventRecord(event, NULL));
    MUST(cuEventSynchronize(event));
}

/* Neither memory nor an event is more than a node here. */
static void capture(void)
{
    CUdeviceptr memory;
    CUgraph graph;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemAllocAsync(&memory, 512, stream));
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamEndCapture(stream, &graph));
}

/* ---- what the records say ---- */

static const char *call_of(uint32_t correlation)
{
    const char *name = "no call";

    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityAPI *call = (const void *)records[i];
        if (call->kind == CUPTI_ACTIVITY_KIND_DRIVER && call->correlationId == correlation)
            MUST(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name));
    }
    return name;
}

static CUcontext current(void)
{
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
    return context;
}

static uint32_t context_id(void)
{
    uint32_t id = 0;

    MUST(cuptiGetContextId(current(), &id));
    return id;
}

static uint32_t stream_id(CUstream which)
{
    uint32_t id = 0;

    check(cuptiGetStreamId(NULL, NULL, &id) == CUPTI_ERROR_INVALID_STREAM,
          "a stream of no context");
    MUST(cuptiGetStreamId(current(), which, &id));
    return id;
}

static void print_device(const CUpti_ActivityDevice5 *device)
{
    char name[64];

    MUST(cuDeviceGetName(name, sizeof(name), (CUdevice)device->id));
    check(!strcmp(device->name, name), "the name of a device");
    check(device->numThreadsPerWarp == 32 && device->maxGridDimY && device->globalMemorySize,
          "the limits of a device");
    printf("device %u, seen %d\n", device->id, device->isCudaVisible);
}

static void print_memory(const CUpti_ActivityMemory4 *memory)
{
    int is_allocation =
        memory->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;

    check(memory->address && memory->contextId == context_id(), "the place of memory");
    check(memory->streamId == (memory->isAsync ? stream_id(stream) : CUPTI_INVALID_STREAM_ID),
          "the stream of memory");
    check(!memory->isAsync || !is_allocation ||
              memory->memoryPoolConfig.utilizedSize >= memory->bytes,
          "the pool of memory");
    printf("%s %llu of kind %d, pool %d, from %s\n", is_allocation ? "allocated" : "freed",
           (unsigned long long)memory->bytes, memory->memoryKind,
           memory->memoryPoolConfig.memoryPoolType, call_of(memory->correlationId));
}

static void print_pool(const CUpti_ActivityMemoryPool3 *pool)
{
    check(pool->address && pool->memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL, "a pool");
    printf("pool step %d from %s\n", pool->memoryPoolOperationType, call_of(pool->correlationId));
}

static void print_event(const CUpti_ActivityCudaEvent2 *one)
{
    static uint64_t last;

    check(one->cudaEventSyncId > last && one->contextId == context_id(), "the number of an event");
    last = one->cudaEventSyncId;
    printf("event in the %s from %s\n",
           one->streamId == stream_id(stream) ? "stream"
           : one->streamId == stream_id(NULL) ? "default stream"
                                              : "void",
           call_of(one->correlationId));
}

/* The newest time at which the event was recorded. */
static void print_wait(const CUpti_ActivitySynchronization2 *wait)
{
    const CUpti_ActivityCudaEvent2 *newest = NULL;

    if (wait->type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE)
        return;
    for (unsigned i = 0; i < record_count; i++)
        if (records[i]->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT)
            newest = (const void *)records[i];
    check(newest && wait->cudaEventSyncId == newest->cudaEventSyncId &&
              wait->cudaEventId == newest->eventId,
          "the event that was waited for");
    printf("wait for the event\n");
}

/* NVIDIA's library lists the streams that its driver makes with a context, too. */
static void print_stream(const CUpti_ActivityStream *one)
{
    if (one->streamId == stream_id(stream))
        printf("stream made, flag %d, from %s\n", one->flag, call_of(one->correlationId));
}

static void print_record(const CUpti_Activity *record)
{
    const CUpti_ActivityContext3 *context = (const void *)record;

    if (record->kind == CUPTI_ACTIVITY_KIND_DEVICE)
        print_device((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_CONTEXT)
        printf("context on %u%s\n", context->deviceId,
               context->nullStreamId == stream_id(NULL) ? "" : " with another stream");
    else if (record->kind == CUPTI_ACTIVITY_KIND_STREAM)
        print_stream((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2)
        print_memory((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL)
        print_pool((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT)
        print_event((const void *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
        print_wait((const void *)record);
}

int main(void)
{
    MUST(cuptiActivityRegisterCallbacks(request_and_enable, complete));
    enable_kinds();
    begin();
    use_memory();
    use_pools();
    use_events();
    capture();
    flush();
    for (unsigned i = 0; i < record_count; i++)
        print_record(records[i]);
    return 0;
}
