/* SPDX-License-Identifier: Apache-2.0 */
/* Launch attributes of kernel nodes. An attribute that was never set reads as zeros, except for the
 * memory synchronization domains. */
#include <string.h>

#include "cuda_launch_attributes.h"
#include "graph_kernel.h"

#include "graph_objects.h"

static struct graph_kernel *kernel_of(CUgraphNode handle)
{
    struct graph_node *node = graph_node_get(handle);

    return node && node->work.type == CU_GRAPH_NODE_TYPE_KERNEL ? &node->work.kernel : NULL;
}

/* A captured launch may have attributes that a program cannot set on a node. */
static bool can_be_set(CUkernelNodeAttrID id)
{
    return graph_kernel_knows_attribute(id) &&
           id != CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
}

static bool can_be_told(CUkernelNodeAttrID id)
{
    return can_be_set(id) && id != CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

static bool is_possible(CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    const CUlaunchAttribute attribute = {.id = id, .value = *value};

    return can_be_set(id) &&
           cuda_launch_attribute_check(&attribute, true) != CUDA_ERROR_INVALID_VALUE;
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

    if (!kernel || !can_be_told(attr))
        return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchAttributeValue *value = graph_kernel_attribute(kernel, attr);
    memset(value_out, 0, sizeof(*value_out));
    if (value)
        *value_out = *value;
    else if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value_out->memSyncDomainMap = CUDA_MEM_SYNC_MAP;
    return CUDA_SUCCESS;
}

CUresult graph_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                             const CUkernelNodeAttrValue *value)
{
    GRAPH_LOCKED;
    struct graph_kernel *kernel = kernel_of(hNode);

    if (!kernel || !is_possible(attr, value))
        return CUDA_ERROR_INVALID_VALUE;
    return graph_kernel_set_attribute(kernel, attr, value);
}
