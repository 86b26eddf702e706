/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies: those that are refused, and the copy that an error names. */
#include "unit.h"

#include <string.h>

#include "cuda_batch.h"

#define STREAM ((CUstream)(uintptr_t)77)
#define COUNT 3u

/* What the copier was asked for, and which of its calls fails. */
static struct {
    unsigned calls, fails_at;
    CUdeviceptr dst[8];
    struct cuda_box box;
} made;

static CUresult note_call(void)
{
    return ++made.calls == made.fails_at ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    (void)src;
    (void)size;
    assert_ptr_equal(stream, STREAM);
    made.dst[made.calls] = dst;
    return note_call();
}

static CUresult copy_box(const struct cuda_box *box, CUstream stream)
{
    assert_ptr_equal(stream, STREAM);
    made.box = *box;
    return note_call();
}

#define FLOATS ((CUarray)(uintptr_t)11) /* two in each element */
#define BYTES ((CUarray)(uintptr_t)12)

static CUresult describe_array(CUDA_ARRAY3D_DESCRIPTOR *ret_array, CUarray array)
{
    if (array != FLOATS && array != BYTES)
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_array = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 64,
                                           .Format = array == FLOATS ? CU_AD_FORMAT_FLOAT
                                                                     : CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = array == FLOATS ? 2 : 1};
    return CUDA_SUCCESS;
}

static const struct cuda_batch_copier copier = {copy, copy_box, describe_array};

static const CUdeviceptr dsts[COUNT] = {0x100, 0x200, 0x300};
static const CUdeviceptr srcs[COUNT] = {0x400, 0x500, 0x600};
static const size_t sizes[COUNT] = {1, 2, 3};

static CUresult copy_with(const CUmemcpyAttributes *attributes, const size_t *indices,
                          size_t attribute_count, size_t *failed)
{
    return cuda_batch_copy(&copier, dsts, srcs, sizes, COUNT, attributes, indices, attribute_count,
                           failed, STREAM);
}

static int reset(void **state)
{
    (void)state;
    memset(&made, 0, sizeof(made));
    return 0;
}

static const CUmemcpyAttributes in_order[2] = {
    {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
    {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY},
};

static void copies_are_made_in_order(void **state)
{
    const size_t indices[2] = {0, 2};

    (void)state;
    assert_int_equal(copy_with(in_order, indices, 2, NULL), CUDA_SUCCESS);
    assert_int_equal(made.calls, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(made.dst[i], dsts[i]);
}

static void an_error_names_its_copy_and_ends_the_batch(void **state)
{
    const size_t indices[1] = {0};
    size_t failed = 99;

    (void)state;
    made.fails_at = 2;
    assert_int_equal(copy_with(in_order, indices, 1, &failed), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(failed, 1);
    assert_int_equal(made.calls, 2);
}

static void attributes_must_cover_the_copies(void **state)
{
    const size_t late[1] = {1}, back[2] = {0, 0}, beyond[2] = {0, COUNT}, first[1] = {0};
    const CUmemcpyAttributes unknown = {.srcAccessOrder = (CUmemcpySrcAccessOrder)99};
    size_t failed = 0;

    (void)state;
    assert_int_equal(copy_with(in_order, late, 1, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_true(failed == SIZE_MAX); /* the batch as a whole */
    assert_int_equal(copy_with(in_order, back, 2, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_with(in_order, beyond, 2, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_with(in_order, first, 0, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_with(NULL, first, 1, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_with(&unknown, first, 1, &failed), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(made.calls, 0);
}

static void default_streams_are_refused(void **state)
{
    const size_t indices[1] = {0};

    (void)state;
    assert_int_equal(
        cuda_batch_copy(&copier, dsts, srcs, sizes, COUNT, in_order, indices, 1, NULL, NULL),
        CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_batch_copy(&copier, dsts, srcs, sizes, COUNT, in_order, indices, 1, NULL,
                                     CU_STREAM_LEGACY),
                     CUDA_ERROR_INVALID_VALUE);
}

static CUDA_MEMCPY3D_BATCH_OP make_op(void)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {4, 3, 2},
                                 .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    op.dst.type = op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.dst.op.ptr.ptr = 0x1000;
    op.dst.op.ptr.rowLength = 16;
    op.dst.op.ptr.layerHeight = 8;
    op.src.op.ptr.ptr = 0x2000;
    return op;
}

static void boxes_are_read(void **state)
{
    const CUDA_MEMCPY3D_BATCH_OP op = make_op();

    (void)state;
    assert_int_equal(cuda_batch_copy_boxes(&copier, 1, &op, NULL, 0, STREAM), CUDA_SUCCESS);
    assert_int_equal(made.box.width, 4);
    assert_int_equal(made.box.height, 3);
    assert_int_equal(made.box.depth, 2);
    assert_int_equal(made.box.dst.device, 0x1000);
    assert_int_equal(made.box.dst.pitch, 16);
    assert_int_equal(made.box.dst.height, 8);
    assert_int_equal(made.box.src.device, 0x2000);
}

static CUDA_MEMCPY3D_BATCH_OP make_op_from(CUarray array)
{
    CUDA_MEMCPY3D_BATCH_OP op = make_op();

    op.src = (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_ARRAY};
    op.src.op.array.array = array;
    op.src.op.array.offset = (CUoffset3D){5, 6, 7};
    return op;
}

static CUresult copy_op(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    return cuda_batch_copy_boxes(&copier, 1, op, NULL, 0, STREAM);
}

static void boxes_of_arrays_are_in_their_elements(void **state)
{
    const CUDA_MEMCPY3D_BATCH_OP op = make_op_from(FLOATS);

    (void)state;
    assert_int_equal(copy_op(&op), CUDA_SUCCESS);
    assert_int_equal(made.box.width, 4 * 8);
    assert_int_equal(made.box.height, 3);
    assert_int_equal(made.box.dst.pitch, 16 * 8);
    assert_int_equal(made.box.dst.height, 8);
    assert_int_equal(made.box.src.type, CU_MEMORYTYPE_ARRAY);
    assert_ptr_equal(made.box.src.array, FLOATS);
    assert_int_equal(made.box.src.x, 5 * 8);
    assert_int_equal(made.box.src.y, 6);
    assert_int_equal(made.box.src.z, 7);
}

static void boxes_that_no_array_has_are_refused(void **state)
{
    CUDA_MEMCPY3D_BATCH_OP op = make_op_from(FLOATS), of_none = make_op_from(NULL);

    (void)state;
    assert_int_equal(copy_op(&of_none), CUDA_ERROR_INVALID_HANDLE);
    op.extent.width = SIZE_MAX / 4;
    assert_int_equal(copy_op(&op), CUDA_ERROR_INVALID_VALUE);
    op = make_op_from(FLOATS);
    op.dst.op.ptr.rowLength = SIZE_MAX / 4;
    assert_int_equal(copy_op(&op), CUDA_ERROR_INVALID_VALUE);
    op = make_op_from(FLOATS);
    op.dst = op.src;
    op.dst.op.array.array = BYTES;
    assert_int_equal(copy_op(&op), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(made.calls, 0);
}

static void an_unknown_operand_ends_the_batch(void **state)
{
    CUDA_MEMCPY3D_BATCH_OP ops[2] = {make_op(), make_op()};
    size_t failed = 0;

    (void)state;
    ops[1].src.type = (CUmemcpy3DOperandType)99;
    assert_int_equal(cuda_batch_copy_boxes(&copier, 2, ops, &failed, 0, STREAM),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(failed, 1);
    assert_int_equal(made.calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(copies_are_made_in_order, reset),
        cmocka_unit_test_setup(an_error_names_its_copy_and_ends_the_batch, reset),
        cmocka_unit_test_setup(attributes_must_cover_the_copies, reset),
        cmocka_unit_test_setup(default_streams_are_refused, reset),
        cmocka_unit_test_setup(boxes_are_read, reset),
        cmocka_unit_test_setup(boxes_of_arrays_are_in_their_elements, reset),
        cmocka_unit_test_setup(boxes_that_no_array_has_are_refused, reset),
        cmocka_unit_test_setup(an_unknown_operand_ends_the_batch, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
