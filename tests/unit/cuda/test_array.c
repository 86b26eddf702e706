/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic on descriptions of arrays: boxes, levels, views. */
#include "unit.h"

#include "cuda_array.h"

/* 16 x 4 x 3 elements of two halves. */
static const CUDA_ARRAY3D_DESCRIPTOR box = {
    .Width = 16,
    .Height = 4,
    .Depth = 3,
    .Format = CU_AD_FORMAT_HALF,
    .NumChannels = 2,
};

static void elements_have_sizes(void **state)
{
    (void)state;
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_SIGNED_INT8, 1), 1);
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_HALF, 2), 4);
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_FLOAT, 4), 16);
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_FLOAT, 3), 0);
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_NV12, 1), 0);
    assert_int_equal(cuda_texel_size(CU_AD_FORMAT_FLOAT, UINT32_MAX), 0);
}

static void boxes_are_inside_and_of_whole_elements(void **state)
{
    (void)state;
    assert_true(cuda_array_contains(&box, 0, 0, 0, 64, 4, 3));
    assert_true(cuda_array_contains(&box, 60, 3, 2, 4, 1, 1));
    assert_true(cuda_array_contains(&box, 64, 4, 3, 0, 0, 0));
    assert_false(cuda_array_contains(&box, 4, 0, 0, 64, 1, 1));
    assert_false(cuda_array_contains(&box, 0, 1, 0, 64, 4, 1));
    assert_false(cuda_array_contains(&box, 0, 0, 1, 64, 1, 3));
    assert_false(cuda_array_contains(&box, 2, 0, 0, 4, 1, 1));
    assert_false(cuda_array_contains(&box, 0, 0, 0, 6, 1, 1));
    assert_false(cuda_array_contains(&box, UINT64_MAX - 3, 0, 0, 4, 1, 1));
    assert_false(cuda_array_contains(&box, 4, 0, 0, UINT64_MAX - 3, 1, 1));
}

static void lines_are_boxes_too(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR line = box;

    (void)state;
    line.Height = line.Depth = 0;
    assert_true(cuda_array_contains(&line, 0, 0, 0, 64, 1, 1));
    assert_false(cuda_array_contains(&line, 0, 0, 0, 64, 2, 1));
}

static void levels_go_down_to_one_element(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR level = cuda_array_level(&box, 2);

    (void)state;
    assert_int_equal(cuda_array_most_levels(&box), 5);
    assert_int_equal(level.Width, 4);
    assert_int_equal(level.Height, 1);
    assert_int_equal(level.Depth, 1);
    assert_int_equal(level.NumChannels, 2);
    level = cuda_array_level(&box, 40);
    assert_int_equal(level.Width, 1);
}

/* Layers are no dimension that is halved, and what is not there stays so. */
static void layers_stay(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR layers = box, level;

    (void)state;
    layers.Flags = CUDA_ARRAY3D_LAYERED;
    layers.Height = 0;
    layers.Depth = 300;
    level = cuda_array_level(&layers, 1);
    assert_int_equal(cuda_array_most_levels(&layers), 5);
    assert_int_equal(level.Width, 8);
    assert_int_equal(level.Height, 0);
    assert_int_equal(level.Depth, 300);
}

static void views_show_what_is_there(void **state)
{
    const CUDA_RESOURCE_VIEW_DESC good = {
        .format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
        .width = 16,
        .height = 4,
        .depth = 3,
        .firstMipmapLevel = 1,
        .lastMipmapLevel = 4,
    };
    CUDA_RESOURCE_VIEW_DESC bad[6] = {good, good, good, good, good, good};
    CUarray_format format;
    unsigned channels;

    (void)state;
    bad[0].format = CU_RES_VIEW_FORMAT_FLOAT_2X32;
    bad[1].width = 8;
    bad[2].depth = 0;
    bad[3].lastMipmapLevel = 5;
    bad[4].firstMipmapLevel = UINT32_MAX;
    bad[5].lastLayer = 1;
    assert_int_equal(cuda_array_check_view(&box, 5, &good), CUDA_SUCCESS);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(cuda_array_check_view(&box, 5, &bad[i]), CUDA_ERROR_INVALID_VALUE);
    bad[0].format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
    assert_int_equal(cuda_array_check_view(&box, 5, &bad[0]), CUDA_ERROR_NOT_SUPPORTED);
    bad[0].format = (CUresourceViewFormat)-1;
    assert_int_equal(cuda_array_check_view(&box, 5, &bad[0]), CUDA_ERROR_NOT_SUPPORTED);
    assert_true(cuda_view_format(&good, &box, &format, &channels));
    assert_int_equal(format, CU_AD_FORMAT_FLOAT);
    assert_int_equal(channels, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_have_sizes),
        cmocka_unit_test(boxes_are_inside_and_of_whole_elements),
        cmocka_unit_test(lines_are_boxes_too),
        cmocka_unit_test(levels_go_down_to_one_element),
        cmocka_unit_test(layers_stay),
        cmocka_unit_test(views_show_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
