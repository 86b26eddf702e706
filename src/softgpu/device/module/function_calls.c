/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a kernel, and how many of its blocks fit on an SM.
 */
#include "soft_context.h"
#include "soft_module.h"
#include "soft_stream.h"

static CUresult get_attribute(const struct kernel *kernel, CUfunction_attribute attribute,
                              int *ret_value)
{
    const struct sg_kernel_info *info = kernel->info;
    const int values[CU_FUNC_ATTRIBUTE_MAX] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = info->max_threads_per_block,
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = info->static_shared,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = info->const_size,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = info->local,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = info->registers,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = info->target,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = SOFT_SM_VERSION,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = kernel->max_dynamic_shared,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = kernel->carveout,
        [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = info->cluster[0] != 0,
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = kernel->cluster[0],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = kernel->cluster[1],
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = kernel->cluster[2],
        [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = kernel->cluster_policy,
        [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = kernel->non_portable_cluster,
    };

    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_value = values[attribute];
    return CUDA_SUCCESS;
}

/* The attributes that the code has stay. */
static CUresult set_cluster(struct kernel *kernel, unsigned side, int value)
{
    if (kernel->info->cluster[0])
        return CUDA_ERROR_NOT_PERMITTED;
    if (value < 0)
        return CUDA_ERROR_INVALID_VALUE;
    kernel->cluster[side] = value;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct kernel *kernel, CUfunction_attribute attribute, int value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 ||
            (unsigned)value > SOFT_SHARED_PER_BLOCK_OPTIN - kernel->info->static_shared)
            return CUDA_ERROR_INVALID_VALUE;
        kernel->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        kernel->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        kernel->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return set_cluster(kernel, attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, value);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if ((unsigned)value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
            return CUDA_ERROR_INVALID_VALUE;
        kernel->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : get_attribute(kernel, attrib, pi);
}

CUresult soft_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct kernel *kernel;
    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    return result ? result : set_attribute(kernel, attrib, value);
}

CUresult soft_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                   CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return soft_cuFuncGetAttribute(pi, attrib, (CUfunction)kernel);
}

CUresult soft_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                   CUdevice dev)
{
    if (!device_get(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return soft_cuFuncSetAttribute((CUfunction)kernel, attrib, val);
}

static CUresult check_cache_config(const void *handle, CUfunc_cache config)
{
    struct kernel *kernel;
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = kernel_find_locked(handle, &kernel);
    if (!result && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult soft_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    return check_cache_config(hfunc, config);
}

CUresult soft_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    return check_cache_config(kernel, config);
}

CUresult soft_cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct kernel *kernel;

    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    return kernel_find_locked(hfunc, &kernel);
}

CUresult soft_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct function *function;
    struct module *module;

    SOFT_LOCKED;
    function = soft_get(SOFT_FUNCTION, hfunc);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    module = function->module;
    if (!module->handle)
        module->handle = soft_add(SOFT_MODULE, module);
    if (!module->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *hmod = (CUmodule)module->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = kernel_find_locked(hfunc, &kernel);

    if (!result)
        *name = kernel->info->name;
    return result;
}

CUresult soft_cuKernelGetName(const char **name, CUkernel hfunc)
{
    return soft_cuFuncGetName(name, (CUfunction)hfunc);
}

CUresult soft_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                 size_t *paramSize)
{
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = kernel_find_locked(func, &kernel);

    if (result)
        return result;
    if (paramIndex >= kernel->info->param_count)
        return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = kernel->info->params[paramIndex].offset;
    if (paramSize)
        *paramSize = kernel->info->params[paramIndex].size;
    return CUDA_SUCCESS;
}

CUresult soft_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                   size_t *paramSize)
{
    return soft_cuFuncGetParamInfo((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

CUresult soft_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct kernel *kernel;

    SOFT_LOCKED;
    CUresult result = kernel_find_locked(function, &kernel);

    if (!result)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return result;
}

CUresult soft_cuFuncLoad(CUfunction function)
{
    struct kernel *kernel;
    SOFT_LOCKED;

    return kernel_find_locked(function, &kernel);
}
