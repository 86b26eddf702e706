/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies. The order in which sources are read is one that every copy here keeps. */
#include "cuda_batch.h"

#include <stdbool.h>
#include <stdint.h>

#include "cuda_array.h"

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

static CUresult check_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                            size_t count, const CUmemcpyAttributes *attributes,
                            const size_t *indices, size_t attribute_count, CUstream stream)
{
    if (!dsts || !srcs || !sizes || count == 0 || !stream || stream == CU_STREAM_LEGACY ||
        !attributes_cover(attributes, indices, attribute_count, count))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* What an operand says of its elements: the bytes of an array's, or 0 for memory. */
static CUresult find_element(const struct cuda_batch_copier *copier,
                             const CUmemcpy3DOperand *operand, size_t *ret_bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR array;
    CUresult result;

    *ret_bytes = 0;
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
        return CUDA_SUCCESS;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    result = copier->describe_array(&array, operand->op.array.array);
    if (result == CUDA_SUCCESS)
        *ret_bytes = cuda_texel_size(array.Format, array.NumChannels);
    return result;
}

/* An element is a byte where there is no array, and two arrays must agree. */
static CUresult find_elements(const struct cuda_batch_copier *copier,
                              const CUDA_MEMCPY3D_BATCH_OP *op, size_t *ret_bytes)
{
    size_t dst, src;
    CUresult result = find_element(copier, &op->dst, &dst);

    if (result == CUDA_SUCCESS)
        result = find_element(copier, &op->src, &src);
    if (result != CUDA_SUCCESS)
        return result;
    if (dst && src && dst != src)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_bytes = dst ? dst : src ? src : 1;
    return CUDA_SUCCESS;
}

/* False for a number of elements that has more bytes than a size_t can say. */
static bool to_bytes(size_t *elements, size_t bytes)
{
    return !__builtin_mul_overflow(*elements, bytes, elements);
}

static bool read_operand(const CUmemcpy3DOperand *operand, size_t bytes,
                         struct cuda_box_side *ret_side)
{
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
        *ret_side = (struct cuda_box_side){
            .type = CU_MEMORYTYPE_UNIFIED,
            .device = operand->op.ptr.ptr,
            .pitch = operand->op.ptr.rowLength,
            .height = operand->op.ptr.layerHeight,
        };
        return to_bytes(&ret_side->pitch, bytes);
    }
    *ret_side = (struct cuda_box_side){
        .type = CU_MEMORYTYPE_ARRAY,
        .array = operand->op.array.array,
        .x = operand->op.array.offset.x,
        .y = operand->op.array.offset.y,
        .z = operand->op.array.offset.z,
    };
    return to_bytes(&ret_side->x, bytes);
}

static CUresult find_box(const struct cuda_batch_copier *copier, const CUDA_MEMCPY3D_BATCH_OP *op,
                         struct cuda_box *ret_box)
{
    struct cuda_box box = {
        .width = op->extent.width, .height = op->extent.height, .depth = op->extent.depth};
    size_t bytes;
    CUresult result = find_elements(copier, op, &bytes);

    if (result != CUDA_SUCCESS)
        return result;
    if (!known_order(op->srcAccessOrder) || !to_bytes(&box.width, bytes) ||
        !read_operand(&op->dst, bytes, &box.dst) || !read_operand(&op->src, bytes, &box.src))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_box = box;
    return CUDA_SUCCESS;
}

static CUresult copy_all(const struct cuda_batch_copier *copier, const CUdeviceptr *dsts,
                         const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                         CUstream stream, size_t *ret_failed)
{
    for (size_t i = 0; i < count; i++) {
        CUresult result = copier->copy(dsts[i], srcs[i], sizes[i], stream);

        if (result != CUDA_SUCCESS) {
            *ret_failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuda_batch_copy(const struct cuda_batch_copier *copier, const CUdeviceptr *dsts,
                         const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                         const CUmemcpyAttributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *failed, CUstream stream)
{
    size_t which = SIZE_MAX;
    CUresult result =
        check_batch(dsts, srcs, sizes, count, attributes, indices, attribute_count, stream);

    if (result == CUDA_SUCCESS)
        result = copy_all(copier, dsts, srcs, sizes, count, stream, &which);
    if (result != CUDA_SUCCESS && failed)
        *failed = which;
    return result;
}

static CUresult copy_one_box(const struct cuda_batch_copier *copier,
                             const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
    struct cuda_box box;
    CUresult result = find_box(copier, op, &box);

    return result == CUDA_SUCCESS ? copier->copy_box(&box, stream) : result;
}

CUresult cuda_batch_copy_boxes(const struct cuda_batch_copier *copier, size_t count,
                               const CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                               unsigned long long flags, CUstream stream)
{
    size_t which = SIZE_MAX;
    CUresult result = CUDA_SUCCESS;

    if (count == 0 || !list || flags || !stream || stream == CU_STREAM_LEGACY)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = copy_one_box(copier, &list[i], stream);
        which = i;
    }
    if (result != CUDA_SUCCESS && failed)
        *failed = which;
    return result;
}
