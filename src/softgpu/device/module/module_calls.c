/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls about modules: code in the current context.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "soft_context.h"
#include "soft_module.h"

struct jit_log jit_log_of(unsigned count, const CUjit_option *options, void **values)
{
    struct jit_log log = {0};

    for (unsigned i = 0; options && values && i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log.text = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            log.size = (unsigned)(uintptr_t)values[i];
            log.ret_used = (size_t *)&values[i];
        }
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            values[i] = NULL;
    }
    return log;
}

static CUresult enter_locked(struct library *library, CUmodule *ret_handle)
{
    struct context *context;
    struct module *module;
    CUresult result = context_use_locked(&context);

    if (!result)
        result = library_module_locked(library, context, &module);
    if (result)
        return result;
    module->handle = soft_add(SOFT_MODULE, module);
    if (!module->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_handle = (CUmodule)module->handle;
    return CUDA_SUCCESS;
}

static CUresult check_context(void)
{
    struct context *context;
    SOFT_LOCKED;

    return context_use_locked(&context);
}

CUresult soft_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                 CUjit_option *options, void **optionValues)
{
    struct jit_log log = jit_log_of(numOptions, options, optionValues);
    struct library *library;
    CUresult result;

    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = check_context()) || (result = library_load(image, &log, &library)))
        return result;
    SOFT_LOCKED;
    result = enter_locked(library, module);
    if (result)
        library_free_locked(library);
    return result;
}

CUresult soft_cuModuleLoadData(CUmodule *module, const void *image)
{
    return soft_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult soft_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return soft_cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

/* The whole file, with a NUL behind it: it may be PTX text. */
CUresult file_read(const char *path, char **ret_bytes, size_t *ret_size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    char *bytes;

    if (fd < 0 || fstat(fd, &status))
        return CUDA_ERROR_FILE_NOT_FOUND;
    bytes = calloc(1, status.st_size + 16);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (read_all(fd, bytes, status.st_size)) {
        free(bytes);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *ret_bytes = bytes;
    if (ret_size)
        *ret_size = status.st_size;
    return CUDA_SUCCESS;
}

CUresult soft_cuModuleLoad(CUmodule *module, const char *fname)
{
    _cleanup_free_ char *bytes = NULL;
    CUresult result = file_read(fname, &bytes, NULL);

    return result ? result : soft_cuModuleLoadData(module, bytes);
}

/* A library's own module goes with the library. */
CUresult soft_cuModuleUnload(CUmodule hmod)
{
    struct module *module;
    SOFT_LOCKED;

    module = soft_get(SOFT_MODULE, hmod);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->library->handle)
        return CUDA_ERROR_NOT_PERMITTED;
    context_synchronize_locked(module->context);
    if (soft_get(SOFT_MODULE, hmod))
        library_free_locked(module->library);
    return CUDA_SUCCESS;
}

CUresult soft_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct module *module;
    int index;

    if (!*name)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    module = soft_get(SOFT_MODULE, hmod);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    index = sg_module_find_kernel(module->library->code, name);
    return index < 0 ? CUDA_ERROR_NOT_FOUND : module_function_locked(module, index, hfunc);
}

CUresult soft_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct module *module;

    SOFT_LOCKED;
    module = soft_get(SOFT_MODULE, mod);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = module->library->kernel_count;
    return CUDA_SUCCESS;
}

CUresult soft_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                         CUmodule mod)
{
    struct module *module;
    CUresult result = CUDA_SUCCESS;

    if (!functions || numFunctions == 0)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    module = soft_get(SOFT_MODULE, mod);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; !result && i < numFunctions && i < module->library->kernel_count; i++)
        result = module_function_locked(module, i, &functions[i]);
    return result;
}

CUresult soft_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                   const char *name)
{
    struct module *module;
    uint64_t address;
    size_t size;

    if (!dptr && !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    module = soft_get(SOFT_MODULE, hmod);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = module_variable_locked(module, name, false, &address, &size);

    if (result)
        return result;
    if (dptr)
        *dptr = address;
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

CUresult soft_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
