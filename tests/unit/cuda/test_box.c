/* SPDX-License-Identifier: Apache-2.0 */
/* The sides of box copies: where they begin, and which are refused. */
#include "unit.h"

#include "cuda_box.h"

static const struct cuda_box_side side = {
    .type = CU_MEMORYTYPE_DEVICE,
    .device = 0x1000,
    .x = 8,
    .y = 2,
    .z = 1,
    .pitch = 64,
    .height = 10,
};
static const struct cuda_box box = {.width = 56, .height = 8, .depth = 3};

static void origins_are_added(void **state)
{
    struct cuda_box_rows rows;

    (void)state;
    assert_true(cuda_box_rows_of(&side, &box, &rows));
    assert_int_equal(rows.base, 0x1000);
    assert_int_equal(rows.offset, (1 * 10 + 2) * 64 + 8);
    assert_int_equal(rows.pitch, 64);
    assert_int_equal(rows.height, 10);
}

static void missing_pitches_are_as_the_box_needs(void **state)
{
    struct cuda_box_side open = side;
    struct cuda_box_rows rows;

    (void)state;
    open.pitch = open.height = 0;
    assert_true(cuda_box_rows_of(&open, &box, &rows));
    assert_int_equal(rows.pitch, 64);
    assert_int_equal(rows.height, 10);
}

static void rows_and_slices_must_not_overlap(void **state)
{
    struct cuda_box_side bad = side;
    struct cuda_box_rows rows;
    struct cuda_box flat = box;

    (void)state;
    bad.pitch = 63;
    assert_false(cuda_box_rows_of(&bad, &box, &rows));
    bad.pitch = (size_t)1 << 31;
    assert_false(cuda_box_rows_of(&bad, &box, &rows));
    bad = side;
    bad.x = SIZE_MAX - 8;
    assert_false(cuda_box_rows_of(&bad, &box, &rows));
    bad = side;
    bad.height = 9;
    assert_false(cuda_box_rows_of(&bad, &box, &rows));
    flat.depth = 1;
    assert_true(cuda_box_rows_of(&bad, &flat, &rows));
}

static void kinds_of_memory(void **state)
{
    struct cuda_box_side other = side;
    struct cuda_box_rows rows;

    (void)state;
    other.host = &other;
    other.type = CU_MEMORYTYPE_HOST;
    assert_true(cuda_box_rows_of(&other, &box, &rows));
    assert_int_equal(rows.base, (uintptr_t)&other);
    other.type = CU_MEMORYTYPE_ARRAY;
    assert_false(cuda_box_rows_of(&other, &box, &rows));
    other.type = (CUmemorytype)0;
    assert_false(cuda_box_rows_of(&other, &box, &rows));
}

static struct {
    struct cuda_box box;
    CUstream stream;
    bool sync;
} copied;

static CUresult record_copy(const struct cuda_box *what, CUstream stream, bool sync)
{
    copied.box = *what;
    copied.stream = stream;
    copied.sync = sync;
    return CUDA_ERROR_NOT_FOUND;
}

static void descriptions_reach_the_copier(void **state)
{
    const CUDA_MEMCPY2D flat = {.WidthInBytes = 5, .Height = 6};
    const CUDA_MEMCPY3D deep = {.WidthInBytes = 5, .Height = 6, .Depth = 7};
    const CUDA_MEMCPY3D_PEER peer = {.WidthInBytes = 8, .Height = 9, .Depth = 10};
    const CUstream stream = (CUstream)&copied;

    assert_int_equal(cuda_copy_2d(record_copy, &flat, stream, false), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(copied.box.depth, 1);
    assert_ptr_equal(copied.stream, stream);
    assert_false(copied.sync);
    assert_int_equal(cuda_copy_3d(record_copy, &deep, NULL, true), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(copied.box.depth, 7);
    assert_true(copied.sync);
    assert_int_equal(cuda_copy_3d_peer(record_copy, &peer, NULL, true), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(copied.box.depth, 10);
}

static void missing_descriptions_are_refused(void **state)
{
    assert_int_equal(cuda_copy_2d(record_copy, NULL, NULL, true), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_copy_3d(record_copy, NULL, NULL, true), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda_copy_3d_peer(record_copy, NULL, NULL, true), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(origins_are_added),
        cmocka_unit_test(missing_pitches_are_as_the_box_needs),
        cmocka_unit_test(rows_and_slices_must_not_overlap),
        cmocka_unit_test(kinds_of_memory),
        cmocka_unit_test(descriptions_reach_the_copier),
        cmocka_unit_test(missing_descriptions_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
