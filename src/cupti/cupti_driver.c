/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_driver.h. */
#include "cupti_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define DRIVER_NAME "libcuda.so.1"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cupti_driver driver;
static bool is_there;

static const struct profiler_interface *find_profiler(void *library)
{
    static const CUuuid id = PROFILER_INTERFACE_ID;
    CUresult (*get_table)(const void **, const CUuuid *) = dlsym(library, "cuGetExportTable");
    const struct profiler_interface *profiler;
    const void *table;

    if (!get_table || get_table(&table, &id) != CUDA_SUCCESS)
        return NULL;
    profiler = table;
    return profiler->size >= sizeof(*profiler) ? profiler : NULL;
}

#define ENTRY(symbol, member)                          \
    {                                                  \
#symbol, offsetof(struct cupti_driver, member) \
    }

static const struct {
    const char *symbol;
    size_t place;
} entries[] = {
    ENTRY(cuCtxGetCurrent, get_current),
    ENTRY(cuCtxSetCurrent, set_current),
    ENTRY(cuCtxGetId, context_id),
    ENTRY(cuCtxGetDevice, context_device),
    ENTRY(cuStreamGetId, stream_id),
    ENTRY(cuStreamGetId_ptsz, stream_id_per_thread),
    ENTRY(cuStreamGetFlags, stream_flags),
    ENTRY(cuStreamGetPriority, stream_priority),
    ENTRY(cuFuncGetName, function_name),
    ENTRY(cuStreamGetCaptureInfo_v2, capture_info),
    ENTRY(cuPointerGetAttributes, pointer_attributes),
    ENTRY(cuMemPoolGetAttribute, pool_attribute),
    ENTRY(cuDeviceGetCount, device_count),
    ENTRY(cuDeviceGetAttribute, device_attribute),
    ENTRY(cuDeviceTotalMem_v2, device_memory),
    ENTRY(cuDeviceGetName, device_name),
    ENTRY(cuDeviceGetUuid_v2, device_uuid),
    ENTRY(cuGraphNodeGetType, node_type),
    ENTRY(cuGraphGetNodes, graph_nodes),
    ENTRY(cuGraphChildGraphNodeGetGraph, child_graph),
    ENTRY(InitializeInjectionNvtx2, nvtx_injection),
};

static bool find_entry_points(void *library)
{
    for (unsigned i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        void *function = dlsym(library, entries[i].symbol);
        if (!function)
            return false;
        memcpy((char *)&driver + entries[i].place, &function, sizeof(function));
    }
    return true;
}

/* The library that the program has loaded, or will load. */
static void find_driver(void)
{
    void *library = dlopen(DRIVER_NAME, RTLD_NOW);

    driver.profiler = library ? find_profiler(library) : NULL;
    is_there = driver.profiler && find_entry_points(library);
}

const struct cupti_driver *cupti_driver(void)
{
    pthread_once(&once, find_driver);
    return is_there ? &driver : NULL;
}

uint32_t cupti_current_context(CUcontext *ret_context)
{
    const struct cupti_driver *calls = cupti_driver();
    unsigned long long id;
    CUcontext context;

    *ret_context = NULL;
    if (!calls || calls->get_current(&context) != CUDA_SUCCESS || !context)
        return 0;
    *ret_context = context;
    return calls->context_id(context, &id) == CUDA_SUCCESS ? (uint32_t)id : 0;
}

uint32_t cupti_current_device(void)
{
    const struct cupti_driver *calls = cupti_driver();
    CUdevice device;

    return calls && calls->context_device(&device) == CUDA_SUCCESS ? (uint32_t)device : 0;
}

uint32_t cupti_context_number(CUcontext context)
{
    const struct cupti_driver *calls = cupti_driver();
    unsigned long long id;

    return context && calls && calls->context_id(context, &id) == CUDA_SUCCESS ? (uint32_t)id
                                                                               : CUPTI_INVALID_ID;
}

uint32_t cupti_stream_number(CUstream stream)
{
    const struct cupti_driver *calls = cupti_driver();
    unsigned long long id;

    return calls && calls->stream_id(stream, &id) == CUDA_SUCCESS ? (uint32_t)id : 0;
}

const char *cupti_function_name(CUfunction function)
{
    const struct cupti_driver *calls = cupti_driver();
    const char *name;

    return calls && calls->function_name(&name, function) == CUDA_SUCCESS ? name : NULL;
}
