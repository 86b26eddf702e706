/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels as the work of nodes: their parameters in a buffer of their own, and launch attributes.
 */
#include "graph_kernel.h"

#include <stdlib.h>
#include <string.h>

static CUlaunchAttribute *find_attribute(const struct graph_kernel *kernel, CUlaunchAttributeID id)
{
    for (unsigned i = 0; i < kernel->attribute_count; i++) {
        if (kernel->attributes[i].id == id)
            return &kernel->attributes[i];
    }
    return NULL;
}

const CUlaunchAttributeValue *graph_kernel_attribute(const struct graph_kernel *kernel,
                                                     CUlaunchAttributeID id)
{
    const CUlaunchAttribute *attribute = find_attribute(kernel, id);

    return attribute ? &attribute->value : NULL;
}

bool graph_kernel_knows_attribute(CUlaunchAttributeID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return true;
    default:
        return false;
    }
}

/* All sides or none. */
static bool is_cluster(const CUlaunchAttributeValue *value)
{
    return (value->clusterDim.x && value->clusterDim.y && value->clusterDim.z) ||
           (!value->clusterDim.x && !value->clusterDim.y && !value->clusterDim.z);
}

CUresult graph_kernel_set_attribute(struct graph_kernel *kernel, CUlaunchAttributeID id,
                                    const CUlaunchAttributeValue *value)
{
    CUlaunchAttribute *attribute = find_attribute(kernel, id);

    if (!graph_kernel_knows_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && !is_cluster(value))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) /* no kernel changes nodes */
        return value->deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED
                                                                : CUDA_SUCCESS;
    if (!attribute) {
        size_t size = (kernel->attribute_count + 1) * sizeof(*attribute);
        CUlaunchAttribute *grown = realloc(kernel->attributes, size);

        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        kernel->attributes = grown;
        attribute = &grown[kernel->attribute_count++];
        memset(attribute, 0, sizeof(*attribute));
        attribute->id = id;
    }
    attribute->value = *value;
    return CUDA_SUCCESS;
}

CUresult graph_kernel_copy_attributes(struct graph_kernel *to, const struct graph_kernel *from)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; !result && i < from->attribute_count; i++)
        result = graph_kernel_set_attribute(to, from->attributes[i].id, &from->attributes[i].value);
    return result;
}

/* ---- the whole ---- */

#define EXTRA_WORDS 6

const void *graph_kernel_function(const struct graph_kernel *kernel)
{
    return kernel->kern ? (const void *)kernel->kern : (const void *)kernel->func;
}

void graph_kernel_fini(struct graph_kernel *kernel)
{
    free(kernel->offsets);
    free(kernel->params);
    free(kernel->buffer);
    free(kernel->attributes);
}

bool graph_kernel_allocate(struct graph_kernel *kernel, unsigned count, size_t size)
{
    kernel->param_count = count;
    kernel->offsets = calloc(count + 1, sizeof(*kernel->offsets));
    kernel->params = calloc(count + EXTRA_WORDS, sizeof(*kernel->params));
    kernel->buffer_size = size;
    kernel->buffer = calloc(1, size + 1);
    return kernel->offsets && kernel->params && kernel->buffer;
}

/* `extra` stands behind the parameters, and the size that it points to behind it. */
static void **extra_of(const struct graph_kernel *kernel)
{
    return kernel->params + kernel->param_count;
}

void graph_kernel_point(struct graph_kernel *kernel)
{
    void **extra = extra_of(kernel);

    for (unsigned i = 0; i < kernel->param_count; i++)
        kernel->params[i] = kernel->buffer + kernel->offsets[i];
    extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra[1] = kernel->buffer;
    extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra[3] = &extra[5];
    extra[4] = CU_LAUNCH_PARAM_END;
    extra[5] = (void *)kernel->buffer_size;
}

CUresult graph_kernel_copy(const struct graph_kernel *kernel, struct graph_kernel *ret_copy)
{
    struct graph_kernel copy = *kernel;

    copy.attributes = NULL;
    copy.attribute_count = 0;
    if (!graph_kernel_allocate(&copy, kernel->param_count, kernel->buffer_size) ||
        graph_kernel_copy_attributes(&copy, kernel)) {
        graph_kernel_fini(&copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy.buffer, kernel->buffer, kernel->buffer_size);
    memcpy(copy.offsets, kernel->offsets, kernel->param_count * sizeof(*kernel->offsets));
    graph_kernel_point(&copy);
    *ret_copy = copy;
    return CUDA_SUCCESS;
}

static bool has_size_of(const struct graph_kernel *kernel, const struct graph_kernel *other)
{
    return kernel->param_count == other->param_count && kernel->buffer_size == other->buffer_size;
}

void graph_kernel_keep_arrays(struct graph_kernel *from, struct graph_kernel *to)
{
    struct graph_kernel made = *to;

    if (!has_size_of(from, to))
        return;
    memcpy(from->buffer, made.buffer, made.buffer_size);
    to->params = from->params;
    to->buffer = from->buffer;
    from->params = made.params;
    from->buffer = made.buffer;
    graph_kernel_point(to);
}

CUDA_KERNEL_NODE_PARAMS graph_kernel_params(const struct graph_work *work)
{
    const struct graph_kernel *kernel = &work->kernel;

    return (CUDA_KERNEL_NODE_PARAMS){
        .func = kernel->func,
        .gridDimX = kernel->grid[0],
        .gridDimY = kernel->grid[1],
        .gridDimZ = kernel->grid[2],
        .blockDimX = kernel->block[0],
        .blockDimY = kernel->block[1],
        .blockDimZ = kernel->block[2],
        .sharedMemBytes = kernel->shared,
        .kernelParams = kernel->given_as_buffer ? NULL : kernel->params,
        .extra = kernel->given_as_buffer ? extra_of(kernel) : NULL,
        .kern = kernel->kern,
        .ctx = work->context,
    };
}
