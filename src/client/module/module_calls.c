/* SPDX-License-Identifier: Apache-2.0 */
/* The cuModule family: images loaded into the current context at once. */
#include <stdlib.h>

#include "client_image.h"
#include "client_module.h"
#include "client_printf.h"
#include "client_prototypes.h"
#include "module_function.h"
#include "module_variable.h"
#include "recovery_hook.h"

static CUresult load_module(CUmodule *ret_module, const void *code,
                            const struct jit_options *options)
{
    struct context *context;
    struct module *module;
    struct image image;
    CUresult result = context_enter(&context);

    if (!ret_module || !code)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = image_init(&image, code, options);
    if (result != CUDA_SUCCESS)
        return result;
    recovery_consider_move();
    result = module_load(context, &image, options, NULL, &module);
    image_fini(&image);
    if (result == CUDA_SUCCESS)
        *ret_module = (CUmodule)module->handle;
    return result;
}

CUresult client_cuModuleLoadData(CUmodule *module, const void *image)
{
    return load_module(module, image, NULL);
}

CUresult client_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return load_module(module, fatCubin, NULL);
}

CUresult client_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned numOptions,
                                   CUjit_option *options, void **optionValues)
{
    struct jit_options read;
    CUresult result = jit_options_read(&read, numOptions, options, optionValues);

    return result != CUDA_SUCCESS ? result : load_module(module, image, &read);
}

CUresult client_cuModuleLoad(CUmodule *module, const char *fname)
{
    void *bytes;
    CUresult result = image_read_file(fname, &bytes, NULL);

    if (result != CUDA_SUCCESS)
        return result;
    result = load_module(module, bytes, NULL);
    free(bytes);
    return result;
}

/* In a thread without a current context the context is the module's. */
static CUresult enter_module(CUmodule handle, struct module **ret_module)
{
    struct module *module = module_lookup(handle);
    struct context *context;
    CUresult result = context_enter(&context);

    if (result == CUDA_ERROR_INVALID_CONTEXT && module && context_is_none())
        result = CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    *ret_module = module;
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult client_cuModuleUnload(CUmodule hmod)
{
    struct module *module;
    CUresult result = enter_module(hmod, &module);

    if (result != CUDA_SUCCESS)
        return result;
    if (module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    module_unload(module);
    printf_output_collect_now();
    return CUDA_SUCCESS;
}

CUresult client_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult client_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct function *function;
    struct module *module;
    CUresult result = enter_module(hmod, &module);

    if (result == CUDA_SUCCESS)
        result = module_function(module, name, &function);
    if (result == CUDA_SUCCESS)
        *hfunc = (CUfunction)function->handle;
    return result;
}

CUresult client_cuModuleGetFunctionCount(unsigned *count, CUmodule mod)
{
    struct module *module;
    CUresult result = enter_module(mod, &module);

    return result != CUDA_SUCCESS ? result : module_kernel_names(module, NULL, 0, count);
}

CUresult client_cuModuleEnumerateFunctions(CUfunction *functions, unsigned numFunctions,
                                           CUmodule mod)
{
    struct module *module;
    unsigned total = 0;
    char **names;
    CUresult result;

    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    result = enter_module(mod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    names = calloc(numFunctions ? numFunctions : 1, sizeof(*names));
    if (!names)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = module_kernel_names(module, names, numFunctions, &total);
    for (unsigned i = 0; i < numFunctions && names[i]; i++) {
        if (result == CUDA_SUCCESS)
            result = client_cuModuleGetFunction(&functions[i], mod, names[i]);
        free(names[i]);
    }
    free(names);
    return result;
}

CUresult client_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                     const char *name)
{
    struct module *module;
    CUresult result;

    if (!dptr && !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    result = enter_module(hmod, &module);
    if (result == CUDA_SUCCESS)
        result = module_global(module, name, false, dptr, bytes);
    return result;
}
