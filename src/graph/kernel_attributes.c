/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch attributes of kernel nodes. What was never set reads as zeros.
 */
#include <stdlib.h>
#include <string.h>

#include "graph_objects.h"

static CUlaunchAttribute *find(const struct graph_kernel *kernel, CUlaunchAttributeID id)
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
    const CUlaunchAttribute *attribute = find(kernel, id);

    return attribute ? &attribute->value : NULL;
}

/* Streams and launches have more than nodes do. */
static bool is_of_nodes(CUlaunchAttributeID id)
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
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

CUresult graph_kernel_set_attribute(struct graph_kernel *kernel, CUlaunchAttributeID id,
                                    const CUlaunchAttributeValue *value)
{
    CUlaunchAttribute *attribute = find(kernel, id);

    if (!is_of_nodes(id))
        return CUDA_ERROR_INVALID_VALUE;
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

static struct graph_kernel *kernel_of(CUgraphNode handle)
{
    struct graph_node *node = graph_node_get(handle);

    return node && node->work.type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->work.kernel : NULL;
}

CUresult graph_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    GRAPH_LOCKED;
    struct graph_kernel *to = kernel_of(dst);
    const struct graph_kernel *from = kernel_of(src);

    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_kernel_copy_attributes(to, from);
}

CUresult graph_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                             CUkernelNodeAttrValue *value_out)
{
    GRAPH_LOCKED;
    const struct graph_kernel *kernel = kernel_of(hNode);

    if (!kernel || !value_out || !is_of_nodes(attr))
        return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchAttributeValue *value = graph_kernel_attribute(kernel, attr);
    if (value)
        *value_out = *value;
    else
        memset(value_out, 0, sizeof(*value_out));
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                             const CUkernelNodeAttrValue *value)
{
    GRAPH_LOCKED;
    struct graph_kernel *kernel = kernel_of(hNode);

    if (!kernel || !value)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_kernel_set_attribute(kernel, attr, value);
}
