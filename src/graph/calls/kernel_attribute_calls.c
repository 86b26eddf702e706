/* SPDX-License-Identifier: Apache-2.0 */
/* Launch attributes of kernel nodes. What was never set reads as zeros. */
#include <string.h>

#include "graph_objects.h"

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

    if (!kernel || !value_out || !graph_kernel_knows_attribute(attr))
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
