/* SPDX-License-Identifier: Apache-2.0 */
/* See module_variable.h. */
#include "module_variable.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_library.h"
#include "client_log.h"
#include "client_managed.h"
#include "client_memory.h"
#include "client_symbol.h"
#include "managed_variable.h"
#include "stream_wait.h"
#include "wire_calls.h"

static bool is_managed(const struct symbol *symbol)
{
    return symbol->variable.kind == &kind_managed_variable;
}

static struct heap *heap_of(const struct module *module)
{
    return memory_device_heap(module->context->device);
}

static void forget_owned(const struct module *module, struct symbol *symbol)
{
    memory_give(heap_of(module), symbol->variable.address);
    free(symbol);
}

static struct symbol *find_symbol_locked(const struct module *module, const char *name)
{
    list_for_each (struct symbol, symbol, &module->symbols, module_link)
        if (!strcmp(symbol->name, name))
            return symbol;
    return NULL;
}

static struct symbol *find_symbol(const struct module *module, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return find_symbol_locked(module, name);
}

static struct symbol *make_symbol(const struct module *module, const char *name,
                                  const struct wire_cuLibraryGetGlobal_reply *found)
{
    struct symbol *symbol = calloc(1, sizeof(*symbol) + strlen(name) + 1);

    if (!symbol)
        return NULL;
    strcpy(symbol->name, name);
    symbol->seen = !found->carried;
    symbol->variable = (struct allocation){
        .address = found->address,
        .size = found->size,
        .id = client_next_id(),
        .kind = found->managed ? &kind_managed_variable : &kind_variable,
        .context = module->context,
    };
    return symbol;
}

/* No kernel can name the variable of a module without kernels: all use it by the address that the
 * program gets here. So memory of the program can stand for it, and stays at that address when the
 * program moves to another server. cuBLAS keeps its constants in such a module. False where there
 * is no memory for it. */
static bool own_variable(const struct module *module, struct symbol *symbol)
{
    struct wire_fnVariableCopy in = {.library = module->handle, .name = symbol->name};
    struct heap *heap = heap_of(module);

    if (memory_take(heap, &kind_variable, module->context, symbol->variable.size, &in.to))
        return false;
    if (wire_fnVariableCopy(&client->channel, &in)) {
        memory_give(heap, in.to);
        return false;
    }
    symbol->variable.address = in.to;
    symbol->owned = true;
    return true;
}

/* Another thread may have been faster, and then its memory counts. */
static struct symbol *keep_symbol(struct module *module, struct symbol *symbol)
{
    pthread_mutex_lock(&client->lock);
    struct symbol *other = symbol->owned ? find_symbol_locked(module, symbol->name) : NULL;
    if (!other)
        list_append(&module->symbols, &symbol->module_link);
    pthread_mutex_unlock(&client->lock);
    if (other)
        forget_owned(module, symbol);
    return other ? other : symbol;
}

/* So that copies find that it is device memory. */
static CUresult remember_symbol(struct module *module, const char *name,
                                const struct wire_cuLibraryGetGlobal_reply *found,
                                struct symbol **ret_symbol)
{
    struct symbol *symbol = make_symbol(module, name, found);

    if (!symbol)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result =
        found->unreached && own_variable(module, symbol) ? CUDA_SUCCESS : symbol_enter(symbol);
    if (result != CUDA_SUCCESS) {
        free(symbol);
        return result;
    }
    *ret_symbol = keep_symbol(module, symbol);
    return CUDA_SUCCESS;
}

static CUresult enter_managed(struct module *module, uint64_t address, uint64_t size)
{
    if (!module->library || library_begin_managed(module->library, module))
        return managed_enter(&module->managed, module->context, address, size);
    client_log("a __managed__ variable was asked for when its library was in use in two contexts");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult ask_for_symbol(struct module *module, const char *name, bool managed_only,
                               struct symbol **ret_symbol)
{
    const struct wire_cuLibraryGetGlobal in = {
        .library = module->handle, .managed = managed_only, .name = name};
    struct wire_cuLibraryGetGlobal_reply out;
    CUresult result = wire_cuLibraryGetGlobal(&client->channel, &in, &out);

    if (result == CUDA_SUCCESS && out.managed)
        result = enter_managed(module, out.address, out.size);
    if (result != CUDA_SUCCESS)
        return result;
    *ret_symbol = find_symbol(module, name);
    return *ret_symbol ? CUDA_SUCCESS : remember_symbol(module, name, &out, ret_symbol);
}

/* libcudart asks before each copy. */
CUresult module_global(struct module *module, const char *name, bool managed_only,
                       CUdeviceptr *ret_address, size_t *ret_size)
{
    struct symbol *symbol = find_symbol(module, name);
    CUdeviceptr address = 0;
    CUresult result = CUDA_SUCCESS;

    if (!symbol || managed_only || is_managed(symbol))
        result = ask_for_symbol(module, name, managed_only, &symbol);
    if (result == CUDA_SUCCESS && ret_address)
        result = symbol_give(symbol, &address);
    if (result != CUDA_SUCCESS)
        return result;
    if (ret_address)
        *ret_address = address;
    if (ret_size)
        *ret_size = symbol->variable.size;
    return CUDA_SUCCESS;
}

/* ---- the life of the module ---- */

void module_variables_hide(struct module *module)
{
    list_for_each (struct symbol, symbol, &module->symbols, module_link) {
        if (!is_managed(symbol))
            variable_remove(symbol->variable.address);
    }
}

void module_variables_show(struct module *module)
{
    list_for_each (struct symbol, symbol, &module->symbols, module_link) {
        if (is_managed(symbol))
            continue;
        symbol->variable.context = module->context;
        variable_add(&symbol->variable);
    }
}

/* Memory of the client is where it was. */
static CUresult replay_symbol(const struct module *module, struct symbol *symbol)
{
    const struct wire_cuLibraryGetGlobal in = {.library = module->handle, .name = symbol->name};
    struct wire_cuLibraryGetGlobal_reply out;

    if (symbol->owned)
        return CUDA_SUCCESS;
    CUresult result = wire_cuLibraryGetGlobal(&client->channel, &in, &out);
    if (result != CUDA_SUCCESS)
        return result;
    if (out.size != symbol->variable.size)
        return CUDA_ERROR_INVALID_IMAGE;
    symbol_move(symbol, out.address);
    symbol->seen |= !out.carried;
    return CUDA_SUCCESS;
}

CUresult module_variables_replay(const struct module *module)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each (struct symbol, symbol, &module->symbols, module_link)
        if (result == CUDA_SUCCESS)
            result = replay_symbol(module, symbol);
    return result;
}

/* Kernels of other modules may use such memory, as that which cuMemFree() ends. */
void module_variables_end_owned(struct module *module)
{
    list_for_each_safe (struct symbol, symbol, &module->symbols, module_link) {
        if (!symbol->owned)
            continue;
        stream_drain_device(module->context->device);
        list_remove(&symbol->module_link);
        forget_owned(module, symbol);
    }
}

void module_variables_forget(struct module *module)
{
    list_for_each_safe (struct symbol, symbol, &module->symbols, module_link) {
        symbol_remove(symbol);
        free(symbol);
    }
}
