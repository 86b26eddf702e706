/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries and kernels belong to no context. A library keeps its image. A module of it is loaded
 * in a context at the first request there, and again after the context was reset.
 */
#include "client_library.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_printf.h"
#include "client_prototypes.h"
#include "client_thread.h"
#include "module_variable.h"
#include "recovery_hook.h"
#include "wire_calls.h"

static struct library *library_lookup(CUlibrary handle)
{
    return handles_get(&client->handles, CLIENT_LIBRARY, (uint64_t)handle);
}

struct kernel *kernel_lookup(CUkernel handle)
{
    return handles_get(&client->handles, CLIENT_KERNEL, (uint64_t)handle);
}

struct context *library_context(void)
{
    struct context *context;

    if (context_current(&context) == CUDA_SUCCESS)
        return context;
    context = context_lookup(context_stack_top(&thread_self()->stack));
    return context ? context : client->devices[0].primary;
}

/* ---- loading ---- */

static struct library *library_create(const void *code, const struct jit_options *options,
                                      CUresult *ret_result)
{
    struct library *library = calloc(1, sizeof(*library));

    *ret_result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!library)
        return NULL;
    pthread_mutex_init(&library->load_lock, NULL);
    list_init(&library->kernels);
    list_init(&library->resting);
    *ret_result = image_init(&library->image, code, options);
    if (*ret_result != CUDA_SUCCESS) {
        free(library);
        return NULL;
    }
    library->handle = handles_add(&client->handles, CLIENT_LIBRARY, library);
    if (library->handle)
        return library;
    *ret_result = CUDA_ERROR_OUT_OF_MEMORY;
    image_fini(&library->image);
    free(library);
    return NULL;
}

/* cudart sets this option for all code that programs were linked with. */
static bool code_stays(const CUlibraryOption *options, void *const *values, unsigned count)
{
    for (unsigned i = 0; values && i < count; i++) {
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED && (int)(uintptr_t)values[i])
            return true;
    }
    return false;
}

CUresult client_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                  void **jitOptionsValues, unsigned numJitOptions,
                                  CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                  unsigned numLibraryOptions)
{
    struct jit_options options;
    struct library *made;
    CUresult result = client_error();

    if (!code || (numLibraryOptions > 0 && !libraryOptions))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = jit_options_read(&options, numJitOptions, jitOptions, jitOptionsValues);
    if (result != CUDA_SUCCESS)
        return result;
    made = library_create(code, &options, &result);
    if (!made)
        return result;
    if (!code_stays(libraryOptions, libraryOptionValues, numLibraryOptions))
        image_keep_inputs(&made->image);
    *library = (CUlibrary)made->handle;
    return CUDA_SUCCESS;
}

CUresult client_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                      CUjit_option *jitOptions, void **jitOptionsValues,
                                      unsigned numJitOptions, CUlibraryOption *libraryOptions,
                                      void **libraryOptionValues, unsigned numLibraryOptions)
{
    void *bytes;
    CUresult result = image_read_file(fileName, &bytes, NULL);

    if (result != CUDA_SUCCESS)
        return result;
    result = client_cuLibraryLoadData(library, bytes, jitOptions, jitOptionsValues, numJitOptions,
                                      libraryOptions, libraryOptionValues, numLibraryOptions);
    free(bytes);
    return result;
}

void library_forget_server(struct library *library)
{
    image_forget_server(&library->image);
}

static struct module *find_module(struct library *library, struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct module, module, &context->modules, link) {
        if (module->library == library)
            return module;
    }
    return NULL;
}

struct module *library_active_module(struct library *library)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct context, context, &client->contexts, link) {
        list_for_each (struct module, module, &context->modules, link) {
            if (module->library == library)
                return module;
        }
    }
    return NULL;
}

static struct module *any_module(struct library *library)
{
    struct module *module = library_active_module(library);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return module ? module : list_first(&library->resting, struct module, link);
}

static struct module *find_resting(struct library *library, const struct device *device)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct module, module, &library->resting, link) {
        if (module->context->device == device)
            return module;
    }
    return NULL;
}

/* A module that the program has asked for managed variables. */
static struct module *find_managed(struct library *library)
{
    struct module *module = any_module(library);

    return module && library->managed ? module : NULL;
}

/* cudart asks for managed variables before the program has made its context. */
static bool waits_for_context(const struct module *module, const struct context *context)
{
    return module->context->device == context->device && module->context->primary &&
           !context_active(module->context);
}

static bool is_only_module(const struct library *library, const struct module *module)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_for_each (struct context, context, &client->contexts, link) {
        list_for_each (struct module, other, &context->modules, link) {
            if (other->library == library && other != module)
                return false;
        }
    }
    return true;
}

bool library_begin_managed(struct library *library, const struct module *module)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&library->load_lock);

    if (!library->managed)
        library->managed = is_only_module(library, module);
    return library->managed;
}

CUresult library_module(struct library *library, struct context *context,
                        struct module **ret_module)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&library->load_lock);
    struct module *home;

    *ret_module = find_module(library, context);
    if (*ret_module)
        return CUDA_SUCCESS;
    home = find_managed(library);
    if (home && waits_for_context(home, context))
        module_rest(home);
    *ret_module = find_resting(library, context->device);
    if (*ret_module)
        return module_wake(*ret_module, context);
    if (home)
        return module_join(context, home, ret_module);
    return module_load(context, &library->image, NULL, library, ret_module);
}

CUresult client_cuLibraryUnload(CUlibrary handle)
{
    struct library *library = handles_remove(&client->handles, CLIENT_LIBRARY, (uint64_t)handle);
    struct module *module;

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    while ((module = any_module(library)) != NULL)
        module_unload(module);
    list_for_each_safe (struct kernel, kernel, &library->kernels, link) {
        handles_remove(&client->handles, CLIENT_KERNEL, kernel->handle);
        free(kernel->name);
        free(kernel);
    }
    image_fini(&library->image);
    free(library);
    printf_output_collect_now(); /* cudart unloads when the program ends */
    return CUDA_SUCCESS;
}

/* ---- kernels ---- */

static struct kernel *find_kernel(struct library *library, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    uint64_t hash = kernel_name_hash(name);

    list_for_each (struct kernel, kernel, &library->kernels, link) {
        if (kernel->name_hash == hash && strcmp(kernel->name, name) == 0)
            return kernel;
    }
    return NULL;
}

static struct kernel *kernel_create(struct library *library, const char *name)
{
    struct kernel *kernel = calloc(1, sizeof(*kernel));

    if (!kernel)
        return NULL;
    kernel->library = library;
    kernel->name_hash = kernel_name_hash(name);
    kernel->name = strdup(name);
    kernel->handle = kernel->name ? handles_add(&client->handles, CLIENT_KERNEL, kernel) : 0;
    if (!kernel->handle) {
        free(kernel->name);
        free(kernel);
        return NULL;
    }
    pthread_mutex_lock(&client->lock);
    list_append(&library->kernels, &kernel->link);
    pthread_mutex_unlock(&client->lock);
    return kernel;
}

static void cache_function(struct kernel *kernel, struct context *context,
                           struct function *function)
{
    function->kernel = kernel;
    atomic_store_explicit(&kernel->functions[context->device->ordinal % KERNEL_CACHE],
                          function->handle, memory_order_release);
}

CUresult kernel_function(struct kernel *kernel, struct context *context,
                         struct function **ret_function)
{
    uint64_t cached = atomic_load_explicit(
        &kernel->functions[context->device->ordinal % KERNEL_CACHE], memory_order_acquire);
    struct function *function = handles_get(&client->handles, WIRE_FUNCTION, cached);
    struct module *module;
    CUresult result;

    if (function && function->module->context == context) {
        *ret_function = function;
        return CUDA_SUCCESS;
    }
    recovery_consider_move();
    result = library_module(kernel->library, context, &module);
    if (result == CUDA_SUCCESS)
        result = module_function(module, kernel->name, ret_function);
    if (result == CUDA_SUCCESS)
        cache_function(kernel, context, *ret_function);
    return result;
}

CUresult function_resolve(struct context *context, CUfunction handle,
                          struct function **ret_function)
{
    struct kernel *kernel;
    struct function *function = handles_get(&client->handles, WIRE_FUNCTION, (uint64_t)handle);

    if (function) {
        *ret_function = function;
        return CUDA_SUCCESS;
    }
    kernel = kernel_lookup((CUkernel)handle);
    return kernel ? kernel_function(kernel, context, ret_function) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_enter(CUfunction handle, struct function **ret_function)
{
    struct context *context;
    CUresult result = context_enter(&context);

    return result != CUDA_SUCCESS ? result : function_resolve(context, handle, ret_function);
}

/* The function is made where that takes no time. Otherwise the kernel is loaded when the program
 * uses it, as natively: libraries ask for many more kernels than they launch. */
static CUresult look_up(struct library *library, struct context *context, const char *name,
                        struct function **ret_function)
{
    struct module *module;
    bool is_ready = false;
    CUresult result = library_module(library, context, &module);

    *ret_function = NULL;
    if (result == CUDA_SUCCESS)
        result = module_find_kernel(module, name, &is_ready);
    return result == CUDA_SUCCESS && is_ready ? module_function(module, name, ret_function)
                                              : result;
}

static CUresult get_kernel(struct library *library, const char *name, struct kernel **ret_kernel)
{
    struct context *context = library_context();
    struct function *function;
    CUresult result;

    *ret_kernel = find_kernel(library, name);
    if (*ret_kernel)
        return CUDA_SUCCESS;
    recovery_consider_move();
    result = look_up(library, context, name, &function);
    if (result != CUDA_SUCCESS)
        return result;
    *ret_kernel = kernel_create(library, name);
    if (!*ret_kernel)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (function)
        cache_function(*ret_kernel, context, function);
    return CUDA_SUCCESS;
}

CUresult client_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary handle, const char *name)
{
    struct library *library = library_lookup(handle);
    struct kernel *kernel;
    CUresult result = client_error();

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = get_kernel(library, name, &kernel);
    if (result == CUDA_SUCCESS)
        *pKernel = (CUkernel)kernel->handle;
    return result;
}

static CUresult kernel_names(CUlibrary handle, char **names, unsigned count, unsigned *ret_total)
{
    struct library *library = library_lookup(handle);
    struct module *module;
    CUresult result = client_error();

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = library_module(library, library_context(), &module);
    return result != CUDA_SUCCESS ? result : module_kernel_names(module, names, count, ret_total);
}

CUresult client_cuLibraryGetKernelCount(unsigned *count, CUlibrary lib)
{
    return kernel_names(lib, NULL, 0, count);
}

CUresult client_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned numKernels, CUlibrary lib)
{
    char **names;
    unsigned total = 0;
    CUresult result;

    if (!kernels)
        return CUDA_ERROR_INVALID_VALUE;
    names = calloc(numKernels ? numKernels : 1, sizeof(*names));
    if (!names)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = kernel_names(lib, names, numKernels, &total);
    for (unsigned i = 0; i < numKernels && names[i]; i++) {
        if (result == CUDA_SUCCESS)
            result = client_cuLibraryGetKernel(&kernels[i], lib, names[i]);
        free(names[i]);
    }
    free(names);
    return result;
}

/* ---- contents of a library, in the current context ---- */

static CUresult current_module(CUlibrary handle, struct module **ret_module)
{
    struct library *library = library_lookup(handle);
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    return library_module(library, context, ret_module);
}

CUresult client_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct module *module;
    CUresult result = current_module(library, &module);

    if (result == CUDA_SUCCESS)
        *pMod = (CUmodule)module->handle;
    return result;
}

CUresult client_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                   const char *name)
{
    struct module *module;
    CUresult result;

    if (!dptr && !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    result = current_module(library, &module);
    if (result == CUDA_SUCCESS)
        result = module_global(module, name, false, dptr, bytes);
    return result;
}

/* Asked before the program has a context: cudart does it when it has loaded a library. */
CUresult client_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary handle,
                                    const char *name)
{
    struct library *library = library_lookup(handle);
    struct module *module;
    CUresult result = client_error();

    if (!dptr && !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = library_module(library, library_context(), &module);
    if (result == CUDA_SUCCESS)
        result = module_global(module, name, true, dptr, bytes);
    return result;
}
