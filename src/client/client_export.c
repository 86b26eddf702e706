/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries ask of a driver beyond the public API. src/cudart answers them, through these
 * functions. */
#include <string.h>

#include "client_call.h"
#include "client_context.h"
#include "client_export.h"
#include "client_module.h"
#include "client_prototypes.h"
#include "client_start.h"
#include "client_stream.h"
#include "client_symbol.h"
#include "client_thread.h"
#include "cudart.h"
#include "entry_points.h"
#include "passthrough.h"
#include "profile_export.h"

static CUresult primary_context(CUcontext *ret_context, CUdevice dev)
{
    struct device *device = device_lookup(dev);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *ret_context = device->primary->handle;
    return CUDA_SUCCESS;
}

static CUcontext current_context(void)
{
    return context_stack_top(&thread_self()->stack);
}

static CUresult context_state(CUcontext handle)
{
    struct context *context = context_lookup(handle);

    return context && context_active(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult context_device(CUcontext handle, CUdevice *ret_device)
{
    struct context *context = context_lookup(handle);

    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_device = context->device->ordinal;
    return CUDA_SUCCESS;
}

static CUresult context_id(CUcontext handle, unsigned long long *ret_id)
{
    return client_cuCtxGetId(handle, ret_id);
}

static CUresult stream_id(CUcontext handle, CUstream stream_handle, unsigned long long *ret_id)
{
    struct context *context;
    struct stream *stream;
    CUresult result;

    call_begin();
    result = context_resolve(handle, &context);
    if (result == CUDA_SUCCESS)
        result = stream_resolve(context, stream_handle, &stream);
    if (result == CUDA_SUCCESS)
        *ret_id = stream->id;
    call_end();
    return result;
}

static unsigned list_functions(CUmodule module, CUfunction *ret_functions, unsigned capacity)
{
    unsigned count = 0;
    CUresult result;

    call_begin();
    result = client_cuModuleGetFunctionCount(&count, module);
    if (count > capacity)
        count = capacity;
    if (result == CUDA_SUCCESS)
        result = client_cuModuleEnumerateFunctions(ret_functions, count, module);
    call_end();
    return result == CUDA_SUCCESS ? count : 0;
}

static int for_each_function(CUcontext handle, CUmodule module_handle,
                             void (*visit)(void *user, CUfunction function), void *user)
{
    CUfunction functions[64];
    unsigned count = list_functions(module_handle, functions, 64);

    for (unsigned i = 0; i < count; i++)
        visit(user, functions[i]);
    return (int)count;
}

static CUresult load_module(CUmodule *ret_module, const void *image)
{
    CUresult result;

    call_begin();
    result = client_cuModuleLoadData(ret_module, image);
    call_end();
    return result;
}

/* A call of the runtime that fails writes no address. */
static uint64_t *address_of(const struct cudart_call *call)
{
    void **const *arguments = call->arguments;

    return arguments && call->result && *(const int *)call->result == 0 ? (uint64_t *)arguments[0]
                                                                        : NULL;
}

static void on_symbol_call(enum cudart_symbol symbol, const struct cudart_call *call)
{
    static const enum symbol_use uses[] = {
        [CUDART_SYMBOL_COPY_TO] = SYMBOL_COPIED_TO, [CUDART_SYMBOL_COPY_FROM] = SYMBOL_COPIED_FROM,
        [CUDART_SYMBOL_SIZE] = SYMBOL_COPIED_FROM,  [CUDART_SYMBOL_ADDRESS] = SYMBOL_SEEN,
        [CUDART_SYMBOL_NODE] = SYMBOL_PUT_IN_GRAPH,
    };

    if (!client)
        return;
    call_begin();
    if (call->exits)
        symbol_call_ends(symbol == CUDART_SYMBOL_ADDRESS ? address_of(call) : NULL);
    else
        symbol_call_begins(uses[symbol]);
    call_end();
}

static struct cudart_ops ops = {
    .device_count = client_cuDeviceGetCount,
    .device_uuid = client_cuDeviceGetUuid_v2,
    .device_attribute = client_cuDeviceGetAttribute,
    .primary_context = primary_context,
    .current_context = current_context,
    .context_state = context_state,
    .context_device = context_device,
    .context_id = context_id,
    .stream_id = stream_id,
    .for_each_function = for_each_function,
    .module_load = load_module,
};

/* ---- in a child of fork ---- */

/* A program's runtime asks the tables that it has before it makes a call. */

static CUresult no_count(int *ret_count)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_uuid(CUuuid *ret_uuid, CUdevice device)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_primary(CUcontext *ret_context, CUdevice device)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUcontext no_current(void)
{
    return NULL;
}

static CUresult no_state(CUcontext context)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_device(CUcontext context, CUdevice *ret_device)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_id(CUcontext context, unsigned long long *ret_id)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult no_stream(CUcontext context, CUstream stream, unsigned long long *ret_id)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static int no_functions(CUcontext context, CUmodule module,
                        void (*visit)(void *user, CUfunction function), void *user)
{
    return 0;
}

static CUresult no_module(CUmodule *ret_module, const void *image)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static const struct cudart_ops ops_without_client = {
    .driver_version = CUDA_VERSION,
    .device_count = no_count,
    .device_uuid = no_uuid,
    .device_attribute = no_attribute,
    .primary_context = no_primary,
    .current_context = no_current,
    .context_state = no_state,
    .context_device = no_device,
    .context_id = no_id,
    .stream_id = no_stream,
    .for_each_function = no_functions,
    .module_load = no_module,
};

void export_after_fork(void)
{
    cudart_init(&ops_without_client);
}

void export_init(void)
{
    ops.driver_version = client->driver_version;
    cudart_init(&ops);
    cudart_watch_symbols(on_symbol_call);
}

/* libcudart asks for a table first, so the mode may be decided here. */
CUresult client_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    CUresult result;

    if (memcmp(pExportTableId, &passthrough_signature, sizeof(*pExportTableId)) == 0) {
        *ppExportTable = &passthrough_signature;
        return CUDA_SUCCESS;
    }
    if (memcmp(pExportTableId, &profile_interface_id, sizeof(*pExportTableId)) == 0) {
        *ppExportTable = &profile_interface;
        return CUDA_SUCCESS;
    }
    result = client_decide();
    if (result != CUDA_SUCCESS) {
        *ppExportTable = NULL;
        return result;
    }
    if (!client)
        return passthrough_get_export_table(ppExportTable, pExportTableId);
    return cudart_get_export_table(ppExportTable, pExportTableId);
}

/* Our own entry points are right in every mode: they pass calls on when there is no server. */
CUresult client_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    return cudart_get_proc_address(entry_points, entry_point_count, symbol, pfn, cudaVersion, flags,
                                   symbolStatus, CUDA_VERSION);
}

CUresult client_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return client_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}
