/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __managed__ variables: each is memory of its own, which belongs to its library and not to a
 * context. So all modules of the library share it, and it stays when a context ends.
 */
#include <stdlib.h>

#include "soft_memory.h"
#include "soft_module.h"

static CUresult create_locked(struct context *context, uint64_t size, struct memory **ret_memory)
{
    CUresult result = memory_allocate_locked(context, MEMORY_SHARED_VARIABLE, size, ret_memory);

    if (!result)
        memory_leave_context_locked(*ret_memory);
    return result;
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
    result = create_locked(context, sg_module_variable(library->code, index)->size, memory);
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
    if (!library->managed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count && !result; i++) {
        const struct sg_variable *variable = sg_module_variable(library->code, i);

        if (variable->is_managed && variable->size)
            result = bind_locked(library, i, context, instance);
    }
    return result;
}

void library_free_managed_locked(struct library *library)
{
    for (unsigned i = 0; library->managed && i < sg_module_variable_count(library->code); i++)
        if (library->managed[i])
            memory_free_locked(library->managed[i]);
    free(library->managed);
}
