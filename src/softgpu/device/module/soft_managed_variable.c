/* SPDX-License-Identifier: Apache-2.0 */
/* See soft_managed_variable.h. */
#include "soft_managed_variable.h"

#include <stdlib.h>

#include "soft_context.h"
#include "soft_memory.h"
static bool is_shared(const struct sg_variable *variable)
{
    return variable->is_managed && variable->size;
}

/* Where a variable lies in the library's pages; that of one behind the last is their size. */
static uint64_t offset_of(const struct library *library, unsigned index)
{
    unsigned count = sg_module_variable_count(library->code);
    uint64_t offset = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct sg_variable *variable = sg_module_variable(library->code, i);
        uint64_t align = variable->align ? variable->align : 1;

        if (!is_shared(variable))
            continue;
        offset = (offset + align - 1) & ~(align - 1);
        if (i == index)
            return offset;
        offset += variable->size;
    }
    return offset;
}

static uint64_t size_of_all(const struct library *library)
{
    return offset_of(library, sg_module_variable_count(library->code));
}

static CUresult enter_locked(struct context *context, uint64_t address, uint64_t size,
                             struct memory **ret_memory)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!device_charge_locked(context->device, size))
        return result;
    result = memory_enter_locked(context, MEMORY_SHARED_VARIABLE, address, size, SG_READ | SG_WRITE,
                                 ret_memory);
    if (result) {
        device_refund_locked(context->device, size);
        return result;
    }
    (*ret_memory)->charged = size;
    memory_leave_context_locked(*ret_memory);
    return CUDA_SUCCESS;
}

static CUresult bind_locked(struct library *library, unsigned index, struct context *context,
                            struct sg_instance *instance)
{
    struct memory **memory = &library->managed[index];
    CUresult result;

    if (*memory) {
        sg_instance_share(instance, index, (*memory)->address);
        return CUDA_SUCCESS;
    }
    result = enter_locked(context, (uintptr_t)library->managed_pages + offset_of(library, index),
                          sg_module_variable(library->code, index)->size, memory);
    if (!result)
        sg_instance_bind(instance, index, (*memory)->address);
    return result;
}

CUresult library_bind_managed_locked(struct library *library, struct context *context,
                                     struct sg_instance *instance)
{
    unsigned count = sg_module_variable_count(library->code);
    CUresult result = CUDA_SUCCESS;

    if (!library->managed)
        library->managed = calloc(count + 1, sizeof(*library->managed));
    if (!library->managed_pages && size_of_all(library))
        library->managed_pages = memory_map_variables_locked(size_of_all(library));
    if (!library->managed || (size_of_all(library) && !library->managed_pages))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count && !result; i++)
        if (is_shared(sg_module_variable(library->code, i)))
            result = bind_locked(library, i, context, instance);
    return result;
}

void library_free_managed_locked(struct library *library)
{
    for (unsigned i = 0; library->managed && i < sg_module_variable_count(library->code); i++)
        if (library->managed[i])
            memory_free_locked(library->managed[i]);
    if (library->managed_pages)
        memory_unmap_variables(library->managed_pages, size_of_all(library));
    free(library->managed);
}
