/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on functions and kernels. The client answers most of them from the facts that came with the
 * function. */
#include <stdatomic.h>
#include <string.h>

#include "client_library.h"
#include "client_prototypes.h"
#include "module_function.h"
#include "recovery_hook.h"
#include "wire_calls.h"

/* A kernel in the primary context of a device. */
static CUresult kernel_on_device(CUkernel handle, CUdevice dev, struct function **ret_function)
{
    struct kernel *kernel = kernel_lookup(handle);
    struct device *device = device_lookup(dev);
    struct context *context;
    CUresult result = recovery_client_error();

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (result != CUDA_SUCCESS)
        return result;
    context = library_context();
    if (context->device != device)
        context = device->primary;
    return kernel_function(kernel, context, ret_function);
}

/* ---- attributes ---- */

/* Threads read attributes while another thread sets one: get_attribute() and set_attribute(). */
static _Atomic int32_t *attribute_word(const struct function *function,
                                       CUfunction_attribute attribute)
{
    return (_Atomic int32_t *)(uintptr_t)&function->attributes[attribute];
}

static CUresult get_attribute(const struct function *function, CUfunction_attribute attribute,
                              int *ret_value)
{
    if ((unsigned)attribute >= FUNCTION_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_value = atomic_load_explicit(attribute_word(function, attribute), memory_order_relaxed);
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct function *function, CUfunction_attribute attribute, int value)
{
    struct wire_cuFuncSetAttribute in = {
        .f = function->handle, .attribute = attribute, .value = value};
    CUresult result;

    if ((unsigned)attribute >= FUNCTION_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load_explicit(attribute_word(function, attribute), memory_order_relaxed) == value)
        return CUDA_SUCCESS;
    result = wire_cuFuncSetAttribute(&client->channel, &in);
    if (result != CUDA_SUCCESS)
        return result;
    atomic_store_explicit(attribute_word(function, attribute), value, memory_order_relaxed);
    occupancy_cache_clear(&function->occupancy);
    return CUDA_SUCCESS;
}

/* Also in a thread without a current context, as natively. */
static CUresult enter_anywhere(CUfunction handle, struct function **ret_function)
{
    struct function *function = handles_get(&client->handles, WIRE_FUNCTION, (uint64_t)handle);
    CUresult result = function_enter(handle, ret_function);

    if (result != CUDA_ERROR_INVALID_CONTEXT || !function || !context_is_none())
        return result;
    *ret_function = function;
    return CUDA_SUCCESS;
}

CUresult client_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct function *function;
    CUresult result = enter_anywhere(hfunc, &function);

    return result != CUDA_SUCCESS ? result : get_attribute(function, attrib, pi);
}

CUresult client_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);

    return result != CUDA_SUCCESS ? result : set_attribute(function, attrib, value);
}

CUresult client_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                     CUdevice dev)
{
    struct function *function;
    CUresult result = kernel_on_device(kernel, dev, &function);

    return result != CUDA_SUCCESS ? result : get_attribute(function, attrib, pi);
}

CUresult client_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                     CUdevice dev)
{
    struct function *function;
    CUresult result = kernel_on_device(kernel, dev, &function);

    return result != CUDA_SUCCESS ? result : set_attribute(function, attrib, val);
}

/* ---- preferences ---- */

static CUresult set_cache_config(struct function *function, CUfunc_cache config)
{
    struct wire_cuFuncSetCacheConfig in = {.f = function->handle, .config = config};
    CUresult result;

    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    channel_lock(&client->channel);
    result = wire_cuFuncSetCacheConfig(&client->channel, &in);
    channel_unlock(&client->channel);
    occupancy_cache_clear(&function->occupancy);
    return result;
}

CUresult client_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);

    return result != CUDA_SUCCESS ? result : set_cache_config(function, config);
}

CUresult client_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    struct function *function;
    CUresult result = kernel_on_device(kernel, dev, &function);

    return result != CUDA_SUCCESS ? result : set_cache_config(function, config);
}

CUresult client_cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct function *function;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return function_enter(hfunc, &function);
}

/* ---- names, parents, parameters ---- */

CUresult client_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);

    if (result == CUDA_SUCCESS)
        *hmod = (CUmodule)function->module->handle;
    return result;
}

/* The string lives as long as the function. */
CUresult client_cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct function *function;
    CUresult result = function_enter(hfunc, &function);

    if (result == CUDA_SUCCESS)
        *name = function->name;
    return result;
}

CUresult client_cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct kernel *kernel = kernel_lookup(hfunc);

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name;
    return CUDA_SUCCESS;
}

static CUresult param_info(const struct function *function, size_t index, size_t *ret_offset,
                           size_t *ret_size)
{
    if (index >= function->param_count || !ret_offset)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_offset = function->layout[2 * index];
    if (ret_size)
        *ret_size = function->layout[2 * index + 1];
    return CUDA_SUCCESS;
}

CUresult client_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                   size_t *paramSize)
{
    struct function *function;
    CUresult result = function_enter(func, &function);

    return result != CUDA_SUCCESS ? result
                                  : param_info(function, paramIndex, paramOffset, paramSize);
}

CUresult client_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                     size_t *paramSize)
{
    struct function *function;
    struct kernel *found = kernel_lookup(kernel);
    CUresult result;

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    result = kernel_function(found, library_context(), &function);
    return result != CUDA_SUCCESS ? result
                                  : param_info(function, paramIndex, paramOffset, paramSize);
}

CUresult client_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct function *function;
    struct context *context;
    struct kernel *found = kernel_lookup(kernel);
    CUresult result = context_enter(&context);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = kernel_function(found, context, &function);
    if (result == CUDA_SUCCESS)
        *pFunc = (CUfunction)function->handle;
    return result;
}

CUresult client_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct kernel *found = kernel_lookup(kernel);

    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *pLib = (CUlibrary)found->library->handle;
    return CUDA_SUCCESS;
}

/* Functions are loaded as soon as they have a handle. */
CUresult client_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct function *found;
    CUresult result = function_enter(function, &found);

    if (result == CUDA_SUCCESS)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return result;
}

CUresult client_cuFuncLoad(CUfunction function)
{
    struct function *found;

    return function_enter(function, &found);
}
