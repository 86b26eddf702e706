/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that CUDA_INJECTION64_PATH names: a profiler of programs that know nothing of it. It
 * has CUPTI record and call back all that Funnel's has, reads what it is given, and prints the
 * number of kernels when the program ends.
 */
#include <cupti.h>
#include <stdatomic.h>
#include <string.h>

#include "collect.h"

int InitializeInjection(void);

static atomic_uint kernels;
static atomic_ulong bytes; /* of what was read */

static void CUPTIAPI count_records(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                   size_t valid)
{
    CUpti_Activity *record = NULL;

    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    free(buffer);
}

static void read_call(const CUpti_CallbackData *call)
{
    bytes += strlen(call->functionName) + (call->symbolName ? strlen(call->symbolName) : 0);
    check(call->correlationId != 0, "the number of a call");
}

static void read_resource(CUpti_CallbackId cbid, const CUpti_ResourceData *resource)
{
    const CUpti_ModuleResourceData *module = resource->resourceDescriptor;
    uint32_t id = 0;

    if (resource->context)
        check(cuptiGetContextId(resource->context, &id) == CUPTI_SUCCESS && id, "a context");
    if (cbid != CUPTI_CBID_RESOURCE_MODULE_LOADED &&
        cbid != CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        return;
    for (size_t i = 0; i < module->cubinSize; i++)
        bytes += module->pCubin[i] != 0;
}

static void CUPTIAPI on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                 const void *data)
{
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        read_call(data);
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE && data) /* that of cuInit need not have any */
        read_resource(cbid, data);
}

static void print_kernels(void)
{
    MUST(cuptiActivityFlushAll(0));
    printf("%u kernels were seen\n", kernels);
}

static void enable_all(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DEVICE,
        CUPTI_ACTIVITY_KIND_CONTEXT,
        CUPTI_ACTIVITY_KIND_NAME,
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MARKER,
        CUPTI_ACTIVITY_KIND_MARKER_DATA,
        CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        CUPTI_ACTIVITY_KIND_STREAM,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_MEMORY_POOL,
    };

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        MUST(cuptiActivityEnable(kinds[i]));
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    CUpti_SubscriberHandle subscriber;

    MUST(cuptiActivityRegisterCallbacks(request, count_records));
    enable_all();
    MUST(cuptiSubscribe(&subscriber, on_callback, NULL));
    MUST(cuptiEnableAllDomains(1, subscriber));
    atexit(print_kernels);
    printf("the library is there\n");
    return 1;
}
