/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: lookup of kernels, the facts that clients need, attributes, and occupancy. */
#include "function.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "image_callers.h"
#include "kernel_query.h"
#include "module_state.h"
#include "server_dispatch.h"

static CUresult check_count(struct session *session, const char *call)
{
    if (session->modules->functions < SESSION_FUNCTIONS_MAX)
        return CUDA_SUCCESS;
    session_log_error(session, "%s: more than %u functions", call, SESSION_FUNCTIONS_MAX);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static uint32_t uses_of(const struct library *library, const char *name)
{
    const struct image_names *callers = &library->callers;
    uint32_t uses = 0;

    if (!library->has_callers)
        return library->may_print ? FUNCTION_MAY_PRINT : 0;
    for (uint32_t i = 0; i < callers->count; i++) {
        if (strcmp(callers->names[i].name, name) != 0)
            continue;
        if (callers->names[i].size & IMAGE_USES_PRINTF)
            uses |= FUNCTION_MAY_PRINT | 1u << CU_LIMIT_PRINTF_FIFO_SIZE;
        if (callers->names[i].size & IMAGE_USES_UNKNOWN && library->may_print)
            uses |= FUNCTION_MAY_PRINT;
        if (callers->names[i].size & IMAGE_USES_MALLOC)
            uses |= 1u << CU_LIMIT_MALLOC_HEAP_SIZE;
    }
    return uses;
}

static CUresult enter_function(struct session *session, struct module *module, uint64_t handle,
                               struct known_kernel *known)
{
    size_t name_size = strlen(known->facts.name) + 1;
    struct function *function = calloc(1, sizeof(*function) + name_size);

    if (!function)
        return CUDA_ERROR_OUT_OF_MEMORY;
    function->module = module;
    function->known = known;
    function->driver = known->driver;
    function->handle = handle;
    function->uses = uses_of(module_library(module), known->facts.name);
    if (function->uses >> CU_LIMIT_MALLOC_HEAP_SIZE & 1)
        server_note_heap_use(session->server);
    function->params_size = known->facts.params_size;
    function->not_batchable = module->has_references;
    memcpy(function->attributes, known->facts.attributes, sizeof(function->attributes));
    memcpy(function->name, known->facts.name, name_size);

    CUresult result = session_put(session, WIRE_FUNCTION, handle, function);
    if (result != CUDA_SUCCESS) {
        free(function);
        return result;
    }
    list_append(&module->functions, &function->link);
    session->modules->functions++;
    return CUDA_SUCCESS;
}

/* Writes this kernel, and as many others as fit into the reply. */
static void write_reply(const struct module *module, const struct kernel_facts *facts,
                        uint32_t first, struct wire_cuLibraryGetKernel_reply *ret_out)
{
    uint32_t layout_size = facts->param_count * 8;
    char *target = ret_out->layout;

    memcpy(ret_out->attributes, facts->attributes, sizeof(ret_out->attributes));
    ret_out->param_count = facts->param_count;
    ret_out->params_size = facts->params_size;
    memcpy(target, facts->layout, layout_size);
    ret_out->layout_size =
        layout_size +
        (uint32_t)kernel_table_write(cached_kernels(module->cached), first, target + layout_size,
                                     ret_out->layout_capacity - layout_size, &ret_out->next);
}

CUresult serve_cuLibraryGetKernel(struct session *session, const struct wire_cuLibraryGetKernel *in,
                                  struct module *library,
                                  struct wire_cuLibraryGetKernel_reply *ret_out)
{
    struct known_kernel *known = kernel_table_find(cached_kernels(library->cached), in->name);
    CUresult result = check_count(session, "cuLibraryGetKernel");

    if (result == CUDA_SUCCESS)
        result = session_enter(session, library->device);
    if (result == CUDA_SUCCESS && !known)
        result = kernel_query(library->cached, session, in->name, &known);
    if (result == CUDA_SUCCESS)
        result = enter_function(session, library, in->f, known);
    if (result == CUDA_SUCCESS)
        write_reply(library, &known->facts, in->first, ret_out);
    return result;
}

CUresult serve_fnKernelFind(struct session *session, const struct wire_fnKernelFind *in,
                            struct module *library, struct wire_fnKernelFind_reply *ret_out)
{
    CUkernel kernel = NULL;
    CUresult result = session_enter(session, library->device);

    ret_out->known = kernel_table_find(cached_kernels(library->cached), in->name) != NULL;
    if (result != CUDA_SUCCESS || ret_out->known)
        return result;
    return driver.cuLibraryGetKernel(&kernel, module_library(library)->driver, in->name);
}

CUresult serve_fnFunctionEnter(struct session *session, const struct wire_fnFunctionEnter *in,
                               struct module *library)
{
    struct known_kernel *known = kernel_table_get(cached_kernels(library->cached), in->kernel);
    CUresult result = check_count(session, "fnFunctionEnter");

    if (!known) {
        session_log_error(session, "fnFunctionEnter: there is no kernel %u", in->kernel);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return result != CUDA_SUCCESS ? result : enter_function(session, library, in->f, known);
}

void function_end(struct session *session, struct function *function)
{
    list_remove(&function->link);
    session_remove(session, WIRE_FUNCTION, function->handle);
    session->modules->functions--;
    free(function);
}

/* Each client has its own attributes, although other clients may use the same function of the
 * driver. */
CUresult serve_cuFuncGetAttribute(struct session *session, const struct wire_cuFuncGetAttribute *in,
                                  struct function *f, struct wire_cuFuncGetAttribute_reply *ret_out)
{
    CUresult result = session_enter(session, f->module->device);

    if (in->attribute < FUNCTION_ATTRIBUTES)
        ret_out->value = f->attributes[in->attribute];
    else if (result == CUDA_SUCCESS)
        result = driver.cuFuncGetAttribute(&ret_out->value, (CUfunction_attribute)in->attribute,
                                           f->driver);
    return result;
}

/* Upper bounds of a launch. A lower bound would affect other clients, so the client library
 * enforces its program's own bound. */
static bool is_bound(uint32_t attribute)
{
    return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
           attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
}

/* One client at a time: otherwise, of two clients that read the same bound, the one with the lower
 * value might write last. */
static CUresult raise_bound(struct known_kernel *known, CUfunction_attribute attribute, int value)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&known->raising);
    int now = 0;
    CUresult result = driver.cuFuncGetAttribute(&now, attribute, known->driver);

    if (result != CUDA_SUCCESS || (value >= 0 && value <= now))
        return result;
    return driver.cuFuncSetAttribute(known->driver, attribute, value);
}

static CUresult set_carveout(struct known_kernel *known, int value)
{
    CUresult result = driver.cuFuncSetAttribute(
        known->driver, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, value);

    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&known->carveout, value, memory_order_relaxed);
    return result;
}

void function_set_carveout(const struct function *f)
{
    set_carveout(f->known, f->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT]);
}

static bool is_cluster_side(uint32_t attribute)
{
    return attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
           attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH;
}

/* A program cannot change a cluster size that is compiled into the code. */
static CUresult check_cluster_side(const struct function *f, int value)
{
    if (f->known->facts.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH])
        return CUDA_ERROR_NOT_PERMITTED;
    return value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

unsigned function_launch_attributes(const struct function *f, CUlaunchAttribute *ret_attributes)
{
    const int32_t *own = f->attributes, *side = &own[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    int32_t policy = own[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE];
    unsigned count = 0;

    if (side[0] && !f->known->facts.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH])
        ret_attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value.clusterDim = {(unsigned)side[0], (unsigned)side[1], (unsigned)side[2]}};
    if (policy !=
        f->known->facts.attributes[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE])
        ret_attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            .value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)policy};
    return count;
}

static CUresult set_attribute(const struct function *f, CUfunction_attribute attribute, int value)
{
    if (is_cluster_side(attribute))
        return check_cluster_side(f, value);
    if (attribute == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        return (unsigned)value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    if (is_bound(attribute))
        return raise_bound(f->known, attribute, value);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return set_carveout(f->known, value);
    return driver.cuFuncSetAttribute(f->driver, attribute, value);
}

CUresult serve_cuFuncSetAttribute(struct session *session, const struct wire_cuFuncSetAttribute *in,
                                  struct function *f)
{
    CUfunction_attribute attribute = (CUfunction_attribute)in->attribute;
    CUresult result = session_enter(session, f->module->device);

    if (result == CUDA_SUCCESS)
        result = set_attribute(f, attribute, in->value);
    if (result != CUDA_SUCCESS || in->attribute >= FUNCTION_ATTRIBUTES)
        return result;
    CUlaunchAttribute ignored[FUNCTION_LAUNCH_ATTRIBUTES];
    f->attributes[in->attribute] = in->value;
    f->has_own_attributes = function_launch_attributes(f, ignored) > 0;
    return CUDA_SUCCESS;
}

CUresult serve_cuFuncSetCacheConfig(struct session *session,
                                    const struct wire_cuFuncSetCacheConfig *in, struct function *f)
{
    CUresult result = session_enter(session, f->module->device);

    /* The configuration is a preference; a driver without it loses nothing. */
    if (result == CUDA_SUCCESS && driver.cuFuncSetCacheConfig)
        result = driver.cuFuncSetCacheConfig(f->driver, (CUfunc_cache)in->config);
    return result;
}

CUresult serve_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    struct session *session,
    const struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags *in, struct function *f,
    struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_reply *ret_out)
{
    CUresult result = session_enter(session, f->module->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &ret_out->numBlocks, f->driver, in->blockSize, in->dynamicSMemSize, in->flags);
    return result;
}

CUresult serve_cuOccupancyAvailableDynamicSMemPerBlock(
    struct session *session, const struct wire_cuOccupancyAvailableDynamicSMemPerBlock *in,
    struct function *f, struct wire_cuOccupancyAvailableDynamicSMemPerBlock_reply *ret_out)
{
    size_t size = 0;
    CUresult result = session_enter(session, f->module->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuOccupancyAvailableDynamicSMemPerBlock(&size, f->driver, in->numBlocks,
                                                                in->blockSize);
    ret_out->dynamicSmemSize = size;
    return result;
}
