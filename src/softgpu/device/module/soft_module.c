/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries and modules as objects: from an image to code, and from code to an instance with
 * memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_sync.h"
#include "link.h"
#include "soft_context.h"
#include "soft_managed_variable.h"
#include "soft_memory.h"
#include "soft_module.h"

#define LOG_SIZE 4096
#define VARIABLE_ALIGN 256u

void jit_log_write(const struct jit_log *log, const char *text)
{
    soft_log("%s", text);
    if (log->text && log->size) {
        snprintf(log->text, log->size, "%s", text);
        if (log->ret_used)
            *log->ret_used = strlen(log->text) + 1;
    }
}

CUresult fatbin_result(int error)
{
    switch (error) {
    case -ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case -ENOEXEC:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default:
        return CUDA_ERROR_INVALID_IMAGE;
    }
}

static CUresult compile_part(const struct fatbin_part *part, const struct jit_log *log,
                             struct sg_module **ret_code)
{
    char text[LOG_SIZE] = "";
    CUresult result = CUDA_ERROR_INVALID_PTX;
    struct sg_module *code =
        sg_module_load(part->text, part->size, SOFT_SM_VERSION, text, sizeof(text), &result);

    if (!code) {
        jit_log_write(log, text);
        return result;
    }
    *ret_code = code;
    return CUDA_SUCCESS;
}

static bool lacks_variable(const struct sg_module *code, const struct jit_log *log)
{
    char text[LOG_SIZE];

    for (unsigned i = 0; i < sg_module_variable_count(code); i++) {
        const struct sg_variable *variable = sg_module_variable(code, i);

        if (!variable->is_extern)
            continue;
        snprintf(text, sizeof(text), "variable %s is declared but not defined", variable->name);
        jit_log_write(log, text);
        return true;
    }
    return false;
}

/* Another input may define the symbols that one only declares. */
CUresult code_check(const struct fatbin_part *part, const struct jit_log *log, bool whole)
{
    struct sg_module *code;
    CUresult result = compile_part(part, log, &code);

    if (result == CUDA_ERROR_NOT_FOUND && !whole) {
        jit_log_write(log, "");
        return CUDA_SUCCESS;
    }
    if (result)
        return result;
    if (whole && lacks_variable(code, log))
        result = CUDA_ERROR_NOT_FOUND;
    sg_module_unref(code);
    return result;
}

/* The parts of a program that was compiled with relocatable code. */
static CUresult link_and_compile(const struct fatbin_code *code, const struct jit_log *log,
                                 struct sg_module **ret_code)
{
    struct fatbin_part whole;
    CUresult result;

    if (fatbin_link(code, &whole))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = compile_part(&whole, log, ret_code);
    free(whole.text);
    return result;
}

static CUresult load_code(const void *image, const struct jit_log *log, struct sg_module **ret_code)
{
    struct fatbin_code code;
    struct fatbin_reason reason = {0};
    int error = fatbin_read(image, SOFT_SM_VERSION, &code, &reason);
    CUresult result;

    if (error) {
        jit_log_write(log, reason.text);
        return fatbin_result(error);
    }
    result = code.count == 1 ? compile_part(&code.parts[0], log, ret_code)
                             : link_and_compile(&code, log, ret_code);
    fatbin_code_fini(&code);
    return result;
}

static bool fill_kernels(struct library *library)
{
    library->kernel_count = sg_module_kernel_count(library->code);
    library->kernels = calloc(library->kernel_count + 1, sizeof(*library->kernels));
    if (!library->kernels)
        return false;
    for (unsigned i = 0; i < library->kernel_count; i++)
        library->kernels[i] = (struct kernel){.library = library,
                                              .index = i,
                                              .info = sg_module_kernel(library->code, i),
                                              .carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT};
    for (unsigned i = 0; i < library->kernel_count; i++) {
        struct kernel *kernel = &library->kernels[i];

        kernel->max_dynamic_shared = SOFT_SHARED_PER_BLOCK - (int)kernel->info->static_shared;
        for (unsigned side = 0; side < 3; side++)
            kernel->cluster[side] = (int)kernel->info->cluster[side];
    }
    return true;
}

CUresult library_load(const void *image, const struct jit_log *log, struct library **ret_library)
{
    struct library *library = calloc(1, sizeof(*library));
    CUresult result;

    if (!library)
        return CUDA_ERROR_OUT_OF_MEMORY;
    list_init(&library->modules);
    result = load_code(image, log, &library->code);
    if (!result && !fill_kernels(library)) {
        sg_module_unref(library->code);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result) {
        free(library);
        return result;
    }
    *ret_library = library;
    return CUDA_SUCCESS;
}

void library_free_locked(struct library *library)
{
    list_for_each_safe (struct module, module, &library->modules, in_library)
        module_free_locked(module);
    for (unsigned i = 0; i < library->kernel_count; i++) {
        handles_remove(&soft_handles, SOFT_KERNEL, library->kernels[i].handle);
        free(library->kernels[i].retired);
    }
    handles_remove(&soft_handles, SOFT_LIBRARY, library->handle);
    library_free_managed_locked(library);
    sg_module_unref(library->code);
    free(library->kernels);
    free(library);
}

/* Where each variable goes in the module's memory; the return value is how much that takes. */
static uint64_t lay_out(const struct sg_module *code, uint64_t base, struct sg_instance *instance)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < sg_module_variable_count(code); i++) {
        const struct sg_variable *variable = sg_module_variable(code, i);
        uint64_t align = variable->align > VARIABLE_ALIGN ? variable->align : VARIABLE_ALIGN;

        if (variable->is_managed)
            continue;
        offset = (offset + align - 1) & ~(align - 1);
        if (instance)
            sg_instance_bind(instance, i, base + offset);
        offset += variable->size;
    }
    return offset;
}

static CUresult give_memory_locked(struct module *module)
{
    const struct sg_module *code = module->library->code;
    uint64_t size = lay_out(code, 0, NULL);
    char text[LOG_SIZE] = "";
    CUresult result;

    if (size) {
        result = memory_allocate_locked(module->context, MEMORY_VARIABLE, size, &module->variables);
        if (result)
            return result;
        module->variables->variable_at_locked = module_variable_at_locked;
        lay_out(code, module->variables->address, module->instance);
    }
    result = library_bind_managed_locked(module->library, module->context, module->instance);
    if (result)
        return result;
    result = sg_instance_initialize(module->instance, text, sizeof(text));
    if (result)
        soft_log("%s", text);
    return result;
}

static CUresult module_create_locked(struct library *library, struct context *context,
                                     struct module **ret_module)
{
    struct module *module = calloc(1, sizeof(*module));
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->library = library;
    module->context = context;
    list_init(&module->references);
    list_append(&library->modules, &module->in_library);
    list_append(&context->modules, &module->in_context);
    module->instance = sg_instance_create(library->code);
    module->functions = calloc(library->kernel_count + 1, sizeof(*module->functions));
    if (module->instance && module->functions)
        result = give_memory_locked(module);
    if (result) {
        module_free_locked(module);
        return result;
    }
    for (unsigned i = 0; i < library->kernel_count; i++)
        module->functions[i] = (struct function){.module = module, .kernel = &library->kernels[i]};
    *ret_module = module;
    return CUDA_SUCCESS;
}

static struct module *find_module_locked(struct library *library, struct context *context)
{
    list_for_each (struct module, module, &library->modules, in_library) {
        if (module->context == context)
            return module;
    }
    return NULL;
}

CUresult library_module_locked(struct library *library, struct context *context,
                               struct module **ret_module)
{
    struct module *module = find_module_locked(library, context);

    if (!module) {
        device_sync_emulate_locked(context);
        module = find_module_locked(library, context);
    }
    if (!module)
        return module_create_locked(library, context, ret_module);
    *ret_module = module;
    return CUDA_SUCCESS;
}

void module_free_locked(struct module *module)
{
    for (unsigned i = 0; module->functions && i < module->library->kernel_count; i++)
        handles_remove(&soft_handles, SOFT_FUNCTION, module->functions[i].handle);
    handles_remove(&soft_handles, SOFT_MODULE, module->handle);
    module_drop_references_locked(module);
    list_remove(&module->in_library);
    list_remove(&module->in_context);
    if (module->instance)
        sg_instance_unref(module->instance);
    if (module->variables)
        memory_free_locked(module->variables);
    free(module->functions);
    free(module);
}

void modules_drop_context_locked(struct context *context)
{
    list_for_each_safe (struct module, module, &context->modules, in_context) {
        struct library *library = module->library;

        module_free_locked(module);
        if (!library->handle)
            library_free_locked(library);
    }
}

static const struct module *module_of_locked(const struct memory *variables)
{
    list_for_each (struct module, module, &variables->context->modules, in_context) {
        if (module->variables == variables)
            return module;
    }
    return NULL;
}

bool module_variable_at_locked(const struct memory *variables, uint64_t address,
                               uint64_t *ret_start, uint64_t *ret_size)
{
    const struct module *module = module_of_locked(variables);
    unsigned count = module ? sg_module_variable_count(module->library->code) : 0;

    for (unsigned i = 0; i < count; i++) {
        uint64_t start = sg_instance_address(module->instance, i);
        uint64_t size = sg_module_variable(module->library->code, i)->size;

        if (address - start < size) {
            *ret_start = start;
            *ret_size = size;
            return true;
        }
    }
    return false;
}

CUresult module_variable_locked(struct module *module, const char *name, bool managed_only,
                                uint64_t *ret_address, size_t *ret_size)
{
    int index = sg_module_find_variable(module->library->code, name);
    const struct sg_variable *variable;

    if (index < 0)
        return CUDA_ERROR_NOT_FOUND;
    variable = sg_module_variable(module->library->code, index);
    if (managed_only && !variable->is_managed)
        return CUDA_ERROR_NOT_FOUND;
    if (variable->reference)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = sg_instance_address(module->instance, index);
    *ret_size = variable->size;
    return CUDA_SUCCESS;
}

CUresult module_function_locked(struct module *module, unsigned index, CUfunction *ret_handle)
{
    struct function *function = &module->functions[index];

    if (!function->handle)
        function->handle = soft_add(SOFT_FUNCTION, function);
    if (!function->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_handle = (CUfunction)function->handle;
    return CUDA_SUCCESS;
}

CUresult kernel_find_locked(const void *handle, struct kernel **ret_kernel)
{
    struct function *function = soft_get(SOFT_FUNCTION, handle);
    struct kernel *kernel = function ? function->kernel : soft_get(SOFT_KERNEL, handle);

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_kernel = kernel;
    return CUDA_SUCCESS;
}

CUresult kernel_resolve_locked(const void *handle, struct context *context,
                               struct kernel **ret_kernel, struct module **ret_module)
{
    struct function *function = soft_get(SOFT_FUNCTION, handle);
    CUresult result;

    if (function && function->module->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (function) {
        *ret_kernel = function->kernel;
        *ret_module = function->module;
        return CUDA_SUCCESS;
    }
    result = kernel_find_locked(handle, ret_kernel);
    return result ? result : library_module_locked((*ret_kernel)->library, context, ret_module);
}
