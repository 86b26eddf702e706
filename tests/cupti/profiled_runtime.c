/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the runtime API that profiles itself with CUPTI: its calls have records of the
 * runtime, and its work has their numbers. Calls of the driver have records where the runtime does
 * not make them. Prints what the records say, and no time, address or id.
 */
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE 65536u
#define RECORDS_MAX 1024u

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry kernel(.param .u64 p)\n{\nret;\n}\n";

static CUpti_Activity *records[RECORDS_MAX];
static unsigned record_count, runtime_calls, runtime_exits;

#define MUST(call) must((int)(call), #call, __LINE__)

static void must(int result, const char *call, int line)
{
    if (result == 0)
        return;
    printf("line %d: %s gave %d\n", line, call, result);
    fflush(stdout);
    _Exit(1);
}

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = BUFFER_SIZE;
    *max_records = 0;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                              size_t valid)
{
    CUpti_Activity *record = NULL;

    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record_count < RECORDS_MAX)
            records[record_count++] = record;
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    const CUpti_CallbackData *call = data;

    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || strcmp(call->functionName, "cudaLaunchKernel"))
        return;
    if (call->callbackSite == CUPTI_API_ENTER)
        runtime_calls++;
    else
        runtime_exits += *(cudaError_t *)call->functionReturnValue == cudaSuccess &&
                         !strcmp(call->symbolName, "kernel");
}

static void enable_all(void)
{
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
    MUST(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
}

static const char *name_of(const CUpti_ActivityAPI *call)
{
    CUpti_CallbackDomain domain = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME
                                      ? CUPTI_CB_DOMAIN_RUNTIME_API
                                      : CUPTI_CB_DOMAIN_DRIVER_API;
    const char *name;

    MUST(cuptiGetCallbackName(domain, call->cbid, &name));
    return name;
}

static const char *call_of(uint32_t correlation)
{
    for (unsigned i = 0; i < record_count; i++) {
        const CUpti_ActivityAPI *call = (const void *)records[i];
        if ((call->kind == CUPTI_ACTIVITY_KIND_RUNTIME ||
             call->kind == CUPTI_ACTIVITY_KIND_DRIVER) &&
            call->correlationId == correlation)
            return name_of(call);
    }
    return "no call";
}

static void print_record(const CUpti_Activity *record)
{
    const CUpti_ActivityKernel9 *kernel = (const void *)record;
    const CUpti_ActivityMemcpy5 *copy = (const void *)record;
    const CUpti_ActivitySynchronization *wait = (const void *)record;

    if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER)
        printf("call %s\n", name_of((const void *)record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        printf("kernel %s from %s\n", kernel->name, call_of(kernel->correlationId));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        printf("copy of %llu from %s\n", (unsigned long long)copy->bytes,
               call_of(copy->correlationId));
    else if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
        printf("wait type %d from %s\n", wait->type, call_of(wait->correlationId));
}

int main(void)
{
    CUpti_SubscriberHandle subscriber;
    cudaKernel_t kernel;
    cudaLibrary_t library;
    cudaStream_t stream;
    void *memory, *parameters[] = {&memory};
    char bytes[256] = {0};
    int device;

    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cudaFree(NULL));
    MUST(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cudaLibraryGetKernel(&kernel, library, "kernel"));
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&memory, sizeof(bytes)));
    enable_all();
    MUST(cudaGetDevice(&device));
    MUST(cudaMemcpy(memory, bytes, sizeof(bytes), cudaMemcpyHostToDevice));
    MUST(cudaLaunchKernel((const void *)kernel, (dim3){2, 1, 1}, (dim3){32, 1, 1}, parameters, 0,
                          stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cuCtxSynchronize());
    MUST(cuptiActivityFlushAll(0));
    for (unsigned i = 0; i < record_count; i++)
        print_record(records[i]);
    MUST(cuptiUnsubscribe(subscriber));
    printf("%u launches entered, %u left\n", runtime_calls, runtime_exits);
    return 0;
}
