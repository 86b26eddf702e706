/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_driver.h. */
#include "cupti_driver.h"

#include <dlfcn.h>
#include <pthread.h>

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

static bool find_entry_points(void *library)
{
    driver.get_current = dlsym(library, "cuCtxGetCurrent");
    driver.set_current = dlsym(library, "cuCtxSetCurrent");
    driver.context_id = dlsym(library, "cuCtxGetId");
    driver.context_device = dlsym(library, "cuCtxGetDevice");
    driver.stream_id = dlsym(library, "cuStreamGetId");
    driver.stream_id_per_thread = dlsym(library, "cuStreamGetId_ptsz");
    driver.function_name = dlsym(library, "cuFuncGetName");
    driver.capture_info = dlsym(library, "cuStreamGetCaptureInfo_v2");
    driver.node_type = dlsym(library, "cuGraphNodeGetType");
    driver.nvtx_injection = dlsym(library, "InitializeInjectionNvtx2");
    return driver.get_current && driver.set_current && driver.context_id && driver.context_device &&
           driver.stream_id && driver.stream_id_per_thread && driver.function_name &&
           driver.capture_info && driver.node_type && driver.nvtx_injection;
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
