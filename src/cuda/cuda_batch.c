/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies. The order in which sources are read is one that every copy here keeps. */
#include "cuda_batch.h"

#include <stdbool.h>

static bool known_order(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Attributes i are of the copies from indices[i] on, so the indices begin with 0 and grow. */
static bool attributes_cover(const CUmemcpyAttributes *attributes, const size_t *indices,
                             size_t attribute_count, size_t count)
{
    if (!attributes || !indices || attribute_count == 0 || attribute_count > count || indices[0])
        return false;
    for (size_t i = 0; i < attribute_count; i++) {
        if (!known_order(attributes[i].srcAccessOrder))
            return false;
        if (i > 0 && (indices[i] <= indices[i - 1] || indices[i] >= count))
            return false;
    }
    return true;
}

CUresult cuda_batch_check(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                          size_t count, const CUmemcpyAttributes *attributes, const size_t *indices,
                          size_t attribute_count, CUstream stream)
{
    if (!dsts || !srcs || !sizes || count == 0 || !stream || stream == CU_STREAM_LEGACY ||
        !attributes_cover(attributes, indices, attribute_count, count))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Without arrays an element is a byte. */
static CUresult read_operand(const CUmemcpy3DOperand *operand, struct cuda_box_side *ret_side)
{
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_side = (struct cuda_box_side){
        .type = CU_MEMORYTYPE_UNIFIED,
        .device = operand->op.ptr.ptr,
        .pitch = operand->op.ptr.rowLength,
        .height = operand->op.ptr.layerHeight,
    };
    return CUDA_SUCCESS;
}

CUresult cuda_batch_box(const CUDA_MEMCPY3D_BATCH_OP *op, struct cuda_box *ret_box)
{
    struct cuda_box box = {
        .width = op->extent.width, .height = op->extent.height, .depth = op->extent.depth};
    CUresult result = read_operand(&op->dst, &box.dst);

    if (result == CUDA_SUCCESS)
        result = read_operand(&op->src, &box.src);
    if (result == CUDA_SUCCESS && !known_order(op->srcAccessOrder))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *ret_box = box;
    return result;
}
