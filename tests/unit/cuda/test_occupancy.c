/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the best block size. */
#include "cuda_occupancy.h"

#include "unit.h"

/* A multiprocessor of 2048 threads and 64 KiB of shared memory; `context` counts the questions. */
static CUresult blocks_of(const void *context, int block_size, size_t shared, int *ret_blocks)
{
    int by_threads = 2048 / block_size, by_shared = shared ? (int)(65536 / shared) : by_threads;

    ++*(int *)(uintptr_t)context;
    *ret_blocks = by_threads < by_shared ? by_threads : by_shared;
    return block_size == 13 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static int questions;

static struct cuda_block_search search_for(int block_max)
{
    questions = 0;
    return (struct cuda_block_search){
        .blocks = blocks_of,
        .context = &questions,
        .block_max = block_max,
        .warp_size = 32,
        .threads_per_sm = 2048,
        .sm_count = 4,
    };
}

static void test_largest_block_wins_where_it_fills_the_multiprocessor(void **state)
{
    const struct cuda_block_search search = search_for(1024);
    int grid, block;

    assert_int_equal(cuda_best_block(&search, 0, &grid, &block), CUDA_SUCCESS);
    assert_int_equal(block, 1024);
    assert_int_equal(grid, 8);
    assert_int_equal(questions, 1);
}

static void test_smaller_block_wins_where_more_threads_fit(void **state)
{
    const struct cuda_block_search search = search_for(768); /* 2 x 768 = 1536 threads */
    int grid, block;

    assert_int_equal(cuda_best_block(&search, 0, &grid, &block), CUDA_SUCCESS);
    assert_int_equal(block, 512); /* 3 x 672 = 2016, 4 x 512 = 2048 */
    assert_int_equal(grid, 16);
}

static void test_limit_is_rounded_down_to_warps_after_itself(void **state)
{
    const struct cuda_block_search search = search_for(1024);
    int grid, block;

    assert_int_equal(cuda_best_block(&search, 100, &grid, &block), CUDA_SUCCESS);
    assert_int_equal(block, 64); /* 20 x 100 = 2000, 21 x 96 = 2016, 32 x 64 = 2048 */
    assert_int_equal(grid, 128);
}

static size_t quadratic(int block_size)
{
    return (size_t)block_size * (size_t)block_size;
}

static void test_shared_memory_may_follow_the_block_size(void **state)
{
    struct cuda_block_search search = search_for(1024);
    int grid, block;

    search.shared_for = quadratic;
    assert_int_equal(cuda_best_block(&search, 0, &grid, &block), CUDA_SUCCESS);
    assert_int_equal(block, 32); /* 64 x 32 threads with 1 KiB each */
    assert_int_equal(grid, 256);
}

static void test_nothing_fits(void **state)
{
    struct cuda_block_search search = search_for(1024);
    int grid = 1, block = 1;

    search.shared = 70000;
    assert_int_equal(cuda_best_block(&search, 0, &grid, &block), CUDA_SUCCESS);
    assert_int_equal(block, 0);
    assert_int_equal(grid, 0);
}

static void test_error_ends_the_search(void **state)
{
    const struct cuda_block_search search = search_for(13);
    int grid, block;

    assert_int_equal(cuda_best_block(&search, 0, &grid, &block), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(questions, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_block_wins_where_it_fills_the_multiprocessor),
        cmocka_unit_test(test_smaller_block_wins_where_more_threads_fit),
        cmocka_unit_test(test_limit_is_rounded_down_to_warps_after_itself),
        cmocka_unit_test(test_shared_memory_may_follow_the_block_size),
        cmocka_unit_test(test_nothing_fits),
        cmocka_unit_test(test_error_ends_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
