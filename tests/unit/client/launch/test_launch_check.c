/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a launch, with the numbers of an H100 and the answers of its driver. */
#include "unit.h"

#include <string.h>

#include "launch_check.h"

static const int32_t device[CU_DEVICE_ATTRIBUTE_MAX] = {
    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
    [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = 2147483647,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
    [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
    [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
    [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 232448,
};

static int32_t function[CU_FUNC_ATTRIBUTE_MAX];

static CUresult check(unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned shared)
{
    CUlaunchConfig config = {
        .gridDimX = gx,
        .gridDimY = gy,
        .gridDimZ = 1,
        .blockDimX = bx,
        .blockDimY = by,
        .blockDimZ = 1,
        .sharedMemBytes = shared,
    };

    return launch_check(&config, function, device);
}

static int setup(void **state)
{
    memset(function, 0, sizeof(function));
    function[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    function[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    return 0;
}

static void test_shapes(void **state)
{
    assert_int_equal(check(1, 1, 1024, 1, 0), CUDA_SUCCESS);
    assert_int_equal(check(2147483647, 65535, 32, 32, 0), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 2048, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(check(1, 1, 64, 32, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(check(0, 1, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(check(1, 70000, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(check(1, 1, 32, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_registers_limit_the_block(void **state)
{
    function[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 256;
    assert_int_equal(check(1, 1, 256, 1, 0), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 257, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_shared_memory_beyond_the_usual_is_asked_for(void **state)
{
    assert_int_equal(check(1, 1, 32, 1, 49152), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 32, 1, 49153), CUDA_ERROR_INVALID_VALUE);
    function[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 232448;
    assert_int_equal(check(1, 1, 32, 1, 49153), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 32, 1, 232448), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 32, 1, 300000), CUDA_ERROR_INVALID_VALUE);
}

static void test_static_shared_memory_counts(void **state)
{
    function[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 40000;
    function[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 9152;
    assert_int_equal(check(1, 1, 32, 1, 9152), CUDA_SUCCESS);
    assert_int_equal(check(1, 1, 32, 1, 9153), CUDA_ERROR_INVALID_VALUE);
}

static CUresult check_cluster(unsigned grid, unsigned asked)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {asked, 1, 1}};
    CUlaunchConfig config = {
        .gridDimX = grid,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 32,
        .blockDimY = 1,
        .blockDimZ = 1,
        .attrs = &attribute,
        .numAttrs = asked ? 1 : 0,
    };

    return launch_check(&config, function, device);
}

static void require_cluster(int width)
{
    function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = width;
    function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = 1;
    function[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = 1;
}

static void test_clusters_divide_the_grid(void **state)
{
    assert_int_equal(check_cluster(4, 2), CUDA_SUCCESS);
    assert_int_equal(check_cluster(3, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_int_equal(check_cluster(0x7fffffff, 0x7fffffff), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    require_cluster(2);
    assert_int_equal(check_cluster(4, 0), CUDA_SUCCESS);
    assert_int_equal(check_cluster(4, 2), CUDA_SUCCESS);
    assert_int_equal(check_cluster(3, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_int_equal(check_cluster(4, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void test_large_clusters_are_allowed_first(void **state)
{
    assert_int_equal(check_cluster(16, 8), CUDA_SUCCESS);
    assert_int_equal(check_cluster(16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    function[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = 1;
    assert_int_equal(check_cluster(16, 16), CUDA_SUCCESS);
    assert_int_equal(check_cluster(32, 32), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shapes, setup),
        cmocka_unit_test_setup(test_registers_limit_the_block, setup),
        cmocka_unit_test_setup(test_shared_memory_beyond_the_usual_is_asked_for, setup),
        cmocka_unit_test_setup(test_static_shared_memory_counts, setup),
        cmocka_unit_test_setup(test_clusters_divide_the_grid, setup),
        cmocka_unit_test_setup(test_large_clusters_are_allowed_first, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
