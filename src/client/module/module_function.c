/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of modules. The reply to a request for one also describes others that earlier programs
 * have used (kernel prefetch). A call that asks for a prefetched function does not wait.
 */
#include "module_function.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "client_module.h"
#include "client_profile.h"
#include "feature.h"
#include "kernel_record.h"
#include "recovery_hook.h"
#include "wire_calls.h"

#define REPLY_BYTES 8000u
#define PARAMS_MAX 32764u

/* Of functions that the program has destroyed while it is profiled: their kernels may still run. */
struct kept_facts {
    uint64_t handle;
    struct function_facts facts;
    struct kept_facts *next;
};

static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept_facts *kept;

static struct function_facts facts_of(const struct function *function)
{
    return (struct function_facts){
        .registers = (uint32_t)function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS],
        .static_shared = (uint32_t)function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
        .local = (uint32_t)function->attributes[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
        .name = strdup(function->name),
    };
}

static void keep_facts(const struct function *function)
{
    struct kept_facts *made = function->handle ? malloc(sizeof(*made)) : NULL;

    if (!made)
        return;
    *made = (struct kept_facts){function->handle, facts_of(function), kept};
    kept = made;
}

void function_forget_facts(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&facts_lock);

    for (struct kept_facts *one = kept, *next; one; one = next) {
        next = one->next;
        free(one->facts.name);
        free(one);
    }
    kept = NULL;
}

bool function_find_facts(uint64_t handle, struct function_facts *ret_facts)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&facts_lock);
    const struct function *function = handles_get(&client->handles, WIRE_FUNCTION, handle);
    const struct kept_facts *one = kept;

    while (!function && one && one->handle != handle)
        one = one->next;
    if (!function && !one)
        return false;
    *ret_facts = function ? facts_of(function) : one->facts;
    if (!function)
        ret_facts->name = strdup(one->facts.name ? one->facts.name : "");
    return ret_facts->name != NULL;
}

void function_destroy(struct function *function)
{
    if (!function)
        return;
    pthread_mutex_lock(&facts_lock);
    handles_remove(&client->handles, WIRE_FUNCTION, function->handle);
    if (client_profile_is_on())
        keep_facts(function);
    pthread_mutex_unlock(&facts_lock);
    free(function->name);
    free(function->layout);
    free(function->retired);
    free(function);
}

/* The server sends where each parameter lies; the size of a launch's parameters bounds that. */
static bool layout_is_sound(const struct kernel_facts *facts)
{
    if (facts->params_size > PARAMS_MAX)
        return false;
    for (uint32_t i = 0; i < facts->param_count; i++) {
        const uint32_t *pair = &facts->layout[2 * i];
        if (pair[0] > facts->params_size || pair[1] > facts->params_size - pair[0])
            return false;
    }
    return true;
}

/* FNV-1a. */
uint64_t kernel_name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

/* A function without a handle, of which nothing but the name is known. */
static struct function *function_create(struct module *module, const char *name)
{
    struct function *function = calloc(1, sizeof(*function));

    if (!function)
        return NULL;
    list_init(&function->link);
    function->module = module;
    function->name_hash = kernel_name_hash(name);
    function->name = strdup(name);
    if (function->name)
        return function;
    free(function);
    return NULL;
}

/* Whether bytes of the buffer belong to no parameter. */
static bool has_gaps(const struct kernel_facts *facts)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < facts->param_count; i++)
        used += facts->layout[2 * i + 1];
    return used != facts->params_size;
}

static CUresult take_facts(struct function *function, const struct kernel_facts *facts)
{
    size_t layout_size = facts->param_count * 8ull;

    if (!layout_is_sound(facts))
        return CUDA_ERROR_MPS_RPC_FAILURE;
    function->layout = malloc(layout_size + 1);
    if (!function->layout)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(function->layout, facts->layout, layout_size);
    memcpy(function->attributes, facts->attributes, sizeof(function->attributes));
    function->number = facts->number;
    function->param_count = facts->param_count;
    function->params_size = facts->params_size;
    function->has_gaps = has_gaps(facts);
    return CUDA_SUCCESS;
}

/* ---- functions that the client knows ---- */

static struct function *find_locked(struct list *functions, const char *name)
{
    uint64_t hash = kernel_name_hash(name);

    list_for_each (struct function, function, functions, link) {
        if (function->name_hash == hash && strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

static void enter_function(struct function *function)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    list_append(&function->module->functions, &function->link);
}

/* A function that the program uses already, or a prefetched one, which from then on belongs to the
 * caller alone. */
static struct function *find_function(struct module *module, const char *name, bool *ret_prefetched)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    struct function *function = find_locked(&module->functions, name);

    *ret_prefetched = false;
    if (function)
        return function;
    function = find_locked(&module->prefetched, name);
    *ret_prefetched = function != NULL;
    if (function)
        list_remove(&function->link);
    return function;
}

static bool is_known_here(struct module *module, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);

    return find_locked(&module->functions, name) || find_locked(&module->prefetched, name);
}

/* ---- asking ---- */

CUresult module_find_kernel(struct module *module, const char *name, bool *ret_ready)
{
    const struct wire_fnKernelFind in = {.library = module->handle, .name = name};
    struct wire_fnKernelFind_reply out;
    CUresult result;

    *ret_ready = is_known_here(module, name);
    if (*ret_ready)
        return CUDA_SUCCESS;
    result = wire_fnKernelFind(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        *ret_ready = out.known;
    return result;
}

static bool may_prefetch(void)
{
    return !feature_is_off_once(FEATURE_KERNEL_PREFETCH);
}

static uint32_t first_wanted(struct module *module)
{
    return may_prefetch() ? atomic_load_explicit(&module->next_kernel, memory_order_relaxed)
                          : UINT32_MAX;
}

/* Another thread may have prefetched the same kernel: a look-up uses the first one that it finds.
 */
static void keep_prefetched(struct module *module, const struct kernel_facts *facts)
{
    struct function *function = function_create(module, facts->name);

    if (!function || take_facts(function, facts) != CUDA_SUCCESS) {
        function_destroy(function);
        return;
    }
    pthread_mutex_lock(&client->lock);
    list_append(&module->prefetched, &function->link);
    pthread_mutex_unlock(&client->lock);
}

static void keep_prefetched_kernels(struct module *module, const char *at, size_t size,
                                    const char *but)
{
    struct kernel_facts facts;
    size_t step;

    for (; kernel_record_read(at, size, &facts, &step); at += step, size -= step) {
        if (strcmp(facts.name, but) != 0)
            keep_prefetched(module, &facts);
    }
}

static CUresult take_reply(struct function *function,
                           const struct wire_cuLibraryGetKernel_reply *out)
{
    struct kernel_facts facts = {
        .layout = out->layout, .param_count = out->param_count, .params_size = out->params_size};
    size_t layout_size = out->param_count * 8ull;

    if (layout_size > out->layout_size)
        return CUDA_ERROR_MPS_RPC_FAILURE;
    memcpy(facts.attributes, out->attributes, sizeof(facts.attributes));
    keep_prefetched_kernels(function->module, (const char *)out->layout + layout_size,
                            out->layout_size - layout_size, function->name);
    atomic_store_explicit(&function->module->next_kernel, out->next, memory_order_relaxed);
    return take_facts(function, &facts);
}

static CUresult ask_for_kernels(struct function *function)
{
    uint32_t layout[REPLY_BYTES / 4];
    struct wire_cuLibraryGetKernel in = {.library = function->module->handle,
                                         .f = function->handle,
                                         .first = first_wanted(function->module),
                                         .name = function->name};
    struct wire_cuLibraryGetKernel_reply out = {.layout = layout, .layout_capacity = REPLY_BYTES};
    CUresult result = wire_cuLibraryGetKernel(&client->channel, &in, &out);

    return result != CUDA_SUCCESS ? result : take_reply(function, &out);
}

/* The ring keeps the order: no command names the function before the server has it. */
static CUresult enter_prefetched(const struct function *function)
{
    const struct wire_fnFunctionEnter in = {
        .library = function->module->handle, .f = function->handle, .kernel = function->number};
    CUresult result;

    channel_lock(&client->channel);
    result = wire_fnFunctionEnter(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

static CUresult obtain(struct function *function, bool is_prefetched)
{
    function->handle = handles_add(&client->handles, WIRE_FUNCTION, function);
    if (!function->handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return is_prefetched ? enter_prefetched(function) : ask_for_kernels(function);
}

/* ---- another server ---- */

void module_forget_prefetched(struct module *module)
{
    list_for_each_safe (struct function, function, &module->prefetched, link) {
        list_remove(&function->link);
        function_destroy(function);
    }
    module->next_kernel = 0;
}

static bool is_same(const struct function *function,
                    const struct wire_cuLibraryGetKernel_reply *out)
{
    size_t layout_size = function->param_count * 8ull;

    return out->param_count == function->param_count && out->params_size == function->params_size &&
           out->layout_size >= layout_size &&
           memcmp(out->layout, function->layout, layout_size) == 0;
}

/* Sets the attributes that the program has set. */
static CUresult set_attributes(const struct function *function, const int32_t *found)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; i < FUNCTION_ATTRIBUTES && result == CUDA_SUCCESS; i++) {
        struct wire_cuFuncSetAttribute in = {
            .f = function->handle, .attribute = i, .value = function->attributes[i]};

        if (found[i] != in.value)
            result = wire_cuFuncSetAttribute(&client->channel, &in);
    }
    return result;
}

CUresult function_replay(const struct function *function)
{
    uint32_t layout[REPLY_BYTES / 4];
    struct wire_cuLibraryGetKernel in = {.library = function->module->handle,
                                         .f = function->handle,
                                         .first = UINT32_MAX,
                                         .name = function->name};
    struct wire_cuLibraryGetKernel_reply out = {.layout = layout, .layout_capacity = REPLY_BYTES};
    CUresult result;

    if (!function->layout)
        return CUDA_SUCCESS; /* another thread is asking for it, and its request is sent again */
    result = wire_cuLibraryGetKernel(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS && !is_same(function, &out))
        result = CUDA_ERROR_INVALID_IMAGE;
    return result != CUDA_SUCCESS ? result : set_attributes(function, out.attributes);
}

CUresult module_function(struct module *module, const char *name, struct function **ret_function)
{
    recovery_consider_move();
    bool is_prefetched;
    struct function *function = find_function(module, name, &is_prefetched);
    CUresult result;

    if (function && !is_prefetched) {
        *ret_function = function;
        return CUDA_SUCCESS;
    }
    if (!function)
        function = function_create(module, name);
    if (!function)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = obtain(function, is_prefetched);
    if (result != CUDA_SUCCESS) {
        function_destroy(function);
        return result;
    }
    enter_function(function);
    *ret_function = function;
    return CUDA_SUCCESS;
}
