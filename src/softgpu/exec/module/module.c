/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, checked when they are loaded, and instances, which give a module's variables their
 * memory.
 */
#include "module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "program_build.h"
#include "system_calls.h"

#define DEFAULT_MAX_THREADS 1024

/* ---- Loading ---- */

static enum sg_reference reference_of(enum ptx_type type)
{
    return type == PTX_TEXREF    ? SG_TEXTURE_REFERENCE
           : type == PTX_SURFREF ? SG_SURFACE_REFERENCE
                                 : SG_NO_REFERENCE;
}

/* Every variable of a list gets its place in variable_of, those that are not the device's too. */
static void collect_list(struct sg_module *module, struct ptx_symbol *const *list, uint32_t count,
                         uint32_t *variable_of)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ptx_symbol *symbol = list[i];
        variable_of[i] = UINT32_MAX;
        if (!is_device_variable(symbol))
            continue;
        variable_of[i] = module->variable_count;
        module->symbols[module->variable_count] = symbol;
        module->variables[module->variable_count++] = (struct sg_variable){
            .name = symbol->name,
            .size = symbol->variable.size,
            .align = symbol->variable.align,
            .space = symbol->variable.space == PTX_CONST ? SG_VARIABLE_CONST : SG_VARIABLE_GLOBAL,
            .reference = reference_of(symbol->variable.type),
            .is_extern = symbol->variable.is_extern,
            .is_managed = symbol->variable.is_managed,
        };
    }
}

/* The module's variables and, behind them, those that functions declare in their bodies. */
static bool collect_variables(struct sg_module *module)
{
    const struct ptx_module *ptx = module->ptx;
    uint32_t count = ptx->variable_count;
    module->locals_of = calloc(ptx->function_count + 1, sizeof(*module->locals_of));
    for (uint32_t i = 0; module->locals_of && i < ptx->function_count; i++) {
        module->locals_of[i] = count;
        count += ptx->functions[i]->variable_count;
    }
    module->variables = calloc(count + 1, sizeof(*module->variables));
    module->symbols = calloc(count + 1, sizeof(*module->symbols));
    module->variable_of = calloc(count + 1, sizeof(*module->variable_of));
    if (!module->locals_of || !module->variables || !module->symbols || !module->variable_of)
        return false;
    collect_list(module, ptx->variables, ptx->variable_count, module->variable_of);
    for (uint32_t i = 0; i < ptx->function_count; i++)
        collect_list(module, ptx->functions[i]->variables, ptx->functions[i]->variable_count,
                     module->variable_of + module->locals_of[i]);
    return true;
}

static uint32_t const_size(const struct sg_module *module)
{
    uint64_t size = 0;
    for (unsigned i = 0; i < module->variable_count; i++)
        size += module->variables[i].space == SG_VARIABLE_CONST ? module->variables[i].size : 0;
    return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static bool describe_params(const struct ptx_function *function, struct sg_kernel_info *info)
{
    struct sg_param_info *params = calloc(function->param_count + 1, sizeof(*params));
    uint32_t *offsets = calloc(function->param_count + 1, sizeof(*offsets));
    info->params = params;
    if (params && offsets)
        info->params_size = layout_params(function->params, function->param_count, 0, offsets);
    for (uint32_t i = 0; params && offsets && i < function->param_count; i++)
        params[i] =
            (struct sg_param_info){offsets[i], (uint32_t)function->params[i]->variable.size};
    free(offsets);
    info->param_count = function->param_count;
    return params && offsets;
}

/* How many registers a block can have on hardware. */
#define BLOCK_REGISTERS 65536u

/* A compiler for a real GPU finds out how many registers are live at once; what we count is every
 * one that is declared. So the estimate may be far too high. It must not be the reason that a block
 * of the size which the kernel allows is refused. */
static uint32_t estimate_registers(const struct ptx_function *function, uint32_t max_threads)
{
    uint32_t most = BLOCK_REGISTERS / max_threads;
    uint32_t words = 8;
    for (uint32_t i = 0; i < function->register_count; i++)
        words += ptx_type_size(function->registers[i].type) > 4
                     ? 2
                     : function->registers[i].type != PTX_PRED;
    uint32_t estimate = words / 3 < 16 ? 16 : words / 3;
    most = most < 128 ? most : 128;
    return estimate > most ? most : estimate;
}

/* A program has the code of all functions that its kernel may call. */
static bool program_runs(const struct program *program, handler_fn run)
{
    for (uint32_t i = 0; i < program->code_count; i++) {
        if (program->code[i].run == run || program->code[i].inner == run)
            return true;
    }
    return false;
}

static bool describe_kernel(const struct sg_module *module, const struct ptx_function *function,
                            const struct program *program, struct sg_kernel_info *info)
{
    const uint32_t *most = function->max_threads;
    const uint32_t *exact = function->required_threads;
    const uint32_t *limit = exact[0] ? exact : most;
    uint64_t threads = limit[0] ? (uint64_t)limit[0] * limit[1] * limit[2] : DEFAULT_MAX_THREADS;
    uint32_t max_threads = threads < DEFAULT_MAX_THREADS ? (uint32_t)threads : DEFAULT_MAX_THREADS;
    *info = (struct sg_kernel_info){
        .name = function->name,
        .max_threads_per_block = max_threads,
        .registers = estimate_registers(function, max_threads ? max_threads : 1),
        .static_shared = program->static_shared,
        .local = program->local_size,
        .const_size = const_size(module),
        .target = module->ptx->target,
        .prints = program_runs(program, run_printf),
        .allocates = program_runs(program, run_malloc),
    };
    memcpy(info->required_block, exact, sizeof(info->required_block));
    memcpy(info->cluster, function->required_cluster, sizeof(info->cluster));
    return describe_params(function, info);
}

/* Decodes every kernel once, to know that it can be run and what it needs. */
static CUresult collect_kernels(struct sg_module *module, char *log, size_t log_size)
{
    const struct ptx_module *ptx = module->ptx;
    CUresult result = CUDA_SUCCESS;
    module->kernels = calloc(ptx->function_count + 1, sizeof(*module->kernels));
    bool *checked = calloc(ptx->function_count + 1, sizeof(*checked));
    if (!module->kernels || !checked)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < ptx->function_count && result == CUDA_SUCCESS; i++) {
        const struct ptx_function *function = ptx->functions[i];
        if (!function->is_entry || !function->has_body)
            continue;
        struct program *program = program_check(ptx, function, checked, log, log_size, &result);
        if (!program)
            break;
        struct kernel *kernel = &module->kernels[module->kernel_count++];
        kernel->function = function;
        if (!describe_kernel(module, function, program, &kernel->info))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        program_destroy(program);
    }
    free(checked);
    return result;
}

static CUresult module_fill(struct sg_module *module, const char *ptx, size_t size, int sm_target,
                            char *log, size_t log_size)
{
    struct ptx_error error;
    module->ptx = ptx_parse(ptx, size, &error);
    if (!module->ptx) {
        if (log_size)
            snprintf(log, log_size, "PTX line %u: %s", error.line, error.text);
        return error.unsupported ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX;
    }
    if (sm_target > 0 && module->ptx->target > (uint32_t)sm_target) {
        if (log_size)
            snprintf(log, log_size,
                     "PTX for sm_%u cannot run on sm_%d: compile for compute_%d or older",
                     module->ptx->target, sm_target, sm_target);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (!collect_variables(module))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return collect_kernels(module, log, log_size);
}

struct sg_module *sg_module_load(const char *ptx, size_t size, int sm_target, char *log,
                                 size_t log_size, CUresult *ret_result)
{
    struct sg_module *module = calloc(1, sizeof(*module));
    if (!log)
        log_size = 0;
    if (log_size)
        log[0] = '\0';
    if (!module) {
        *ret_result = CUDA_ERROR_OUT_OF_MEMORY;
        return NULL;
    }
    module->references = 1;
    /* A NUL ends the text, however large the buffer is. */
    CUresult result = module_fill(module, ptx, strnlen(ptx, size), sm_target, log, log_size);
    if (result != CUDA_SUCCESS) {
        sg_module_unref(module);
        *ret_result = result;
        return NULL;
    }
    return module;
}

void sg_module_unref(struct sg_module *module)
{
    if (!module || __atomic_sub_fetch(&module->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (unsigned i = 0; i < module->kernel_count; i++)
        free((void *)module->kernels[i].info.params);
    free(module->kernels);
    free(module->variables);
    free(module->symbols);
    free(module->variable_of);
    free(module->locals_of);
    ptx_module_destroy(module->ptx);
    free(module);
}

/* ---- Looking ---- */

unsigned sg_module_variable_count(const struct sg_module *module)
{
    return module->variable_count;
}

const struct sg_variable *sg_module_variable(const struct sg_module *module, unsigned index)
{
    return &module->variables[index];
}

int sg_module_find_variable(const struct sg_module *module, const char *name)
{
    for (unsigned i = 0; i < module->variable_count; i++) {
        if (!module->symbols[i]->home && strcmp(module->variables[i].name, name) == 0)
            return (int)i;
    }
    return -ENOENT;
}

unsigned sg_module_kernel_count(const struct sg_module *module)
{
    return module->kernel_count;
}

const struct sg_kernel_info *sg_module_kernel(const struct sg_module *module, unsigned index)
{
    return &module->kernels[index].info;
}

int sg_module_find_kernel(const struct sg_module *module, const char *name)
{
    for (unsigned i = 0; i < module->kernel_count; i++) {
        if (strcmp(module->kernels[i].info.name, name) == 0)
            return (int)i;
    }
    return -ENOENT;
}

/* ---- Instances ---- */

struct sg_instance *sg_instance_create(struct sg_module *module)
{
    struct sg_instance *instance = calloc(1, sizeof(*instance));
    if (!instance)
        return NULL;
    instance->addresses = calloc(module->variable_count + 1, sizeof(*instance->addresses));
    instance->shared = calloc(module->variable_count + 1, sizeof(*instance->shared));
    instance->programs = calloc(module->kernel_count + 1, sizeof(*instance->programs));
    if (!instance->addresses || !instance->shared || !instance->programs) {
        free(instance->addresses);
        free(instance->shared);
        free(instance->programs);
        free(instance);
        return NULL;
    }
    pthread_mutex_init(&instance->lock, NULL);
    __atomic_add_fetch(&module->references, 1, __ATOMIC_RELAXED);
    instance->module = module;
    instance->references = 1;
    return instance;
}

void sg_instance_unref(struct sg_instance *instance)
{
    if (!instance || __atomic_sub_fetch(&instance->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (unsigned i = 0; i < instance->module->kernel_count; i++)
        program_destroy(instance->programs[i]);
    free(instance->programs);
    free(instance->addresses);
    free(instance->shared);
    pthread_mutex_destroy(&instance->lock);
    sg_module_unref(instance->module);
    free(instance);
}

void sg_instance_bind(struct sg_instance *instance, unsigned index, uint64_t address)
{
    instance->addresses[index] = address;
}

void sg_instance_share(struct sg_instance *instance, unsigned index, uint64_t address)
{
    instance->addresses[index] = address;
    instance->shared[index] = true;
}

uint64_t sg_instance_address(const struct sg_instance *instance, unsigned index)
{
    return instance->addresses[index];
}

static struct variable_addresses variables_of(const struct sg_instance *instance)
{
    return (struct variable_addresses){
        .variable_of = instance->module->variable_of,
        .locals_of = instance->module->locals_of,
        .addresses = instance->addresses,
    };
}

static uint64_t relocated_value(const struct sg_instance *instance,
                                const struct ptx_relocation *relocation)
{
    const struct ptx_symbol *symbol = relocation->symbol;
    const struct variable_addresses variables = variables_of(instance);
    uint64_t address = 0;
    if (symbol->kind == PTX_FUNCTION)
        address = function_pointer(symbol->function->index);
    else
        address = variable_address(&variables, symbol);
    return (address + (uint64_t)relocation->addend) >> relocation->shift;
}

static void initialize_variable(const struct sg_instance *instance, unsigned index)
{
    const struct ptx_variable *variable = &instance->module->symbols[index]->variable;
    unsigned char *memory = (unsigned char *)(uintptr_t)instance->addresses[index];
    if (variable->is_extern || instance->shared[index] || !memory)
        return;
    if (variable->initial_size)
        memcpy(memory, variable->initial, variable->initial_size);
    memset(memory + variable->initial_size, 0, variable->size - variable->initial_size);
    for (const struct ptx_relocation *one = variable->relocations; one; one = one->next) {
        uint64_t value = relocated_value(instance, one);
        memcpy(memory + one->offset, &value, one->size < 8 ? one->size : 8);
    }
}

CUresult sg_instance_initialize(struct sg_instance *instance, char *log, size_t log_size)
{
    for (unsigned i = 0; i < instance->module->variable_count; i++) {
        if (!instance->addresses[i] && instance->module->variables[i].size) {
            if (log && log_size)
                snprintf(log, log_size, "variable %s has no memory",
                         instance->module->variables[i].name);
            return CUDA_ERROR_NOT_FOUND;
        }
        initialize_variable(instance, i);
    }
    return CUDA_SUCCESS;
}

const struct program *instance_program(struct sg_instance *instance, unsigned kernel, char *log,
                                       size_t log_size, CUresult *ret_result)
{
    pthread_mutex_lock(&instance->lock);
    struct program *program = instance->programs[kernel];
    if (!program) {
        const struct variable_addresses variables = variables_of(instance);
        program =
            program_build(&variables, instance->module->ptx,
                          instance->module->kernels[kernel].function, log, log_size, ret_result);
        instance->programs[kernel] = program;
    }
    pthread_mutex_unlock(&instance->lock);
    return program;
}
