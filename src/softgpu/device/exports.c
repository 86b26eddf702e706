/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export tables, by which the CUDA libraries ask this driver. These calls do not come
 * through the entry points, so they ask themselves whether the driver can be used in this process.
 */
#include "cudart.h"
#include "entry_points.h"
#include "soft_context.h"
#include "soft_entry.h"
#include "soft_module.h"

static CUcontext current_context(void)
{
    CUcontext context = NULL;

    soft_cuCtxGetCurrent(&context);
    return context;
}

static CUresult primary_context(CUcontext *ret_context, CUdevice ordinal)
{
    struct device *device = device_get(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *ret_context = (CUcontext)device->primary->handle;
    return CUDA_SUCCESS;
}

static CUresult context_state(CUcontext handle)
{
    struct context *context;

    if (!soft_ready())
        return soft_not_ready();
    SOFT_LOCKED;
    return context_find_locked(handle, &context);
}

static CUresult context_device(CUcontext handle, CUdevice *ret_device)
{
    return soft_ready() ? soft_cuCtxGetDevice_v2(ret_device, handle) : soft_not_ready();
}

static CUresult context_id(CUcontext handle, unsigned long long *ret_id)
{
    return soft_ready() ? soft_cuCtxGetId(handle, ret_id) : soft_not_ready();
}

static CUresult stream_id(CUcontext context, CUstream stream, unsigned long long *ret_id)
{
    return soft_ready() ? soft_cuStreamGetId(stream, ret_id) : soft_not_ready();
}

static CUresult module_load(CUmodule *ret_module, const void *image)
{
    return soft_ready() ? soft_cuModuleLoadData(ret_module, image) : soft_not_ready();
}

static int for_each_function(CUcontext context, CUmodule handle,
                             void (*visit)(void *user, CUfunction function), void *user)
{
    unsigned count = 0;

    if (!soft_ready() || soft_cuModuleGetFunctionCount(&count, handle))
        return 0;
    for (unsigned i = 0; i < count; i++) {
        CUfunction function;
        CUresult result;

        pthread_mutex_lock(&soft_lock);
        struct module *module = soft_get(SOFT_MODULE, handle);

        result = module ? module_function_locked(module, i, &function) : CUDA_ERROR_INVALID_HANDLE;
        pthread_mutex_unlock(&soft_lock);
        if (result)
            return i;
        visit(user, function);
    }
    return count;
}

static const struct cudart_ops ops = {
    .driver_version = SOFT_DRIVER_VERSION,
    .device_count = soft_cuDeviceGetCount,
    .device_uuid = soft_cuDeviceGetUuid_v2,
    .device_attribute = soft_cuDeviceGetAttribute,
    .primary_context = primary_context,
    .current_context = current_context,
    .context_state = context_state,
    .context_device = context_device,
    .context_id = context_id,
    .stream_id = stream_id,
    .for_each_function = for_each_function,
    .module_load = module_load,
};

static void introduce(void)
{
    cudart_init(&ops);
}

CUresult soft_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, introduce);
    return cudart_get_export_table(ppExportTable, pExportTableId);
}

CUresult soft_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus)
{
    return cudart_get_proc_address(entry_points, entry_point_count, symbol, pfn, cudaVersion, flags,
                                   symbolStatus, SOFT_DRIVER_VERSION);
}

CUresult soft_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return soft_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}
