/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls about libraries: code that belongs to no context. It can be loaded before there is one.
 */
#include "device_sync.h"
#include "soft_context.h"
#include "soft_module.h"

CUresult soft_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                void **jitOptionsValues, unsigned int numJitOptions,
                                CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions)
{
    struct jit_log log = jit_log_of(numJitOptions, jitOptions, jitOptionsValues);
    struct library *loaded;

    if (!code)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = library_load(code, &log, &loaded);

    if (result)
        return result;
    SOFT_LOCKED;
    loaded->handle = soft_add(SOFT_LIBRARY, loaded);
    if (!loaded->handle) {
        library_free_locked(loaded);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *library = (CUlibrary)loaded->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                    CUjit_option *jitOptions, void **jitOptionsValues,
                                    unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                    void **libraryOptionValues, unsigned int numLibraryOptions)
{
    _cleanup_free_ char *bytes = NULL;
    CUresult result = file_read(fileName, &bytes, NULL);

    if (result)
        return result;
    return soft_cuLibraryLoadData(library, bytes, jitOptions, jitOptionsValues, numJitOptions, NULL,
                                  NULL, 0);
}

/* Its instances hold memory that kernels may be using. */
CUresult soft_cuLibraryUnload(CUlibrary library)
{
    struct library *found;
    SOFT_LOCKED;

    found = soft_get(SOFT_LIBRARY, library);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    list_for_each (struct module, module, &found->modules, in_library)
        device_sync_locked(module->context);
    if (soft_get(SOFT_LIBRARY, library))
        library_free_locked(found);
    return CUDA_SUCCESS;
}

static CUresult kernel_handle_locked(struct kernel *kernel, CUkernel *ret_handle)
{
    if (!kernel->handle)
        kernel->handle = soft_add(SOFT_KERNEL, kernel);
    if (!kernel->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_handle = (CUkernel)kernel->handle;
    return CUDA_SUCCESS;
}

CUresult soft_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct library *found;
    int index;

    if (!*name)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    found = soft_get(SOFT_LIBRARY, library);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    index = sg_module_find_kernel(found->code, name);
    return index < 0 ? CUDA_ERROR_NOT_FOUND : kernel_handle_locked(&found->kernels[index], pKernel);
}

CUresult soft_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct library *found;

    SOFT_LOCKED;
    found = soft_get(SOFT_LIBRARY, lib);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = found->kernel_count;
    return CUDA_SUCCESS;
}

CUresult soft_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct library *found;
    CUresult result = CUDA_SUCCESS;

    if (!kernels || numKernels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    found = soft_get(SOFT_LIBRARY, lib);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; !result && i < numKernels && i < found->kernel_count; i++)
        result = kernel_handle_locked(&found->kernels[i], &kernels[i]);
    return result;
}

static CUresult current_module_locked(CUlibrary handle, struct module **ret_module)
{
    struct library *library = soft_get(SOFT_LIBRARY, handle);
    struct context *context;
    CUresult result;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    result = context_use_locked(&context);
    return result ? result : library_module_locked(library, context, ret_module);
}

CUresult soft_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct module *module;

    SOFT_LOCKED;
    CUresult result = current_module_locked(library, &module);

    if (result)
        return result;
    if (!module->handle)
        module->handle = soft_add(SOFT_MODULE, module);
    if (!module->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pMod = (CUmodule)module->handle;
    return CUDA_SUCCESS;
}

static CUresult find_variable(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name,
                              bool managed_only)
{
    struct module *module;
    uint64_t address;
    size_t size;

    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = current_module_locked(library, &module);

    if (!result)
        result = module_variable_locked(module, name, managed_only, &address, &size);
    if (result)
        return result;
    if (dptr)
        *dptr = address;
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

CUresult soft_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                 const char *name)
{
    return find_variable(dptr, bytes, library, name, false);
}

/* May be asked before the program has a context: the first device's primary one is made for it. */
CUresult soft_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                  const char *name)
{
    CUcontext before;

    if (soft_cuCtxGetCurrent(&before) || before || devices_count() == 0)
        return find_variable(dptr, bytes, library, name, true);

    struct context *primary = device_get(0)->primary;

    pthread_mutex_lock(&soft_lock);
    CUresult result = context_activate_locked(primary);

    pthread_mutex_unlock(&soft_lock);
    if (result)
        return result;
    soft_cuCtxSetCurrent((CUcontext)primary->handle);
    result = find_variable(dptr, bytes, library, name, true);
    soft_cuCtxSetCurrent(NULL);
    return result;
}

CUresult soft_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct kernel *found;
    struct module *module;
    struct context *context;

    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = kernel_resolve_locked(kernel, context, &found, &module);
    return result ? result : module_function_locked(module, found->index, pFunc);
}

CUresult soft_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct kernel *found;

    SOFT_LOCKED;
    found = soft_get(SOFT_KERNEL, kernel);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *pLib = (CUlibrary)found->library->handle;
    return CUDA_SUCCESS;
}
