/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: nobody gets what somebody has, wishes are heard, and a place that the process has
 * for something else is passed over.
 */
#include "area.h"
#include "attach.h"
#include "fake_driver.h"

#define PIECE (2ull << 20)

static struct area area;
static uint64_t taken_elsewhere; /* in this process, by something else */
static uint64_t reserved;        /* bytes, at the driver */

static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                        unsigned long long flags)
{
    (void)alignment;
    (void)flags;
    *ptr = addr == taken_elsewhere ? RESERVE_END : addr;
    reserved += size;
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr ptr, size_t size)
{
    (void)ptr;
    reserved -= size;
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    (void)state;
    driver.cuMemAddressReserve = reserve;
    driver.cuMemAddressFree = unreserve;
    area_init(&area);
    taken_elsewhere = reserved = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ranges_fini(&area.used);
    return 0;
}

static uint64_t take(uint64_t from, uint64_t size)
{
    uint64_t address = 0;

    assert_int_equal(area_take(&area, from, size, PIECE, &address), CUDA_SUCCESS);
    return address;
}

static void side_by_side_and_back(void **state)
{
    (void)state;
    uint64_t first = take(0, 3 * PIECE), second = take(0, PIECE);

    assert_int_equal(first, RESERVE_FIRST);
    assert_int_equal(second, RESERVE_FIRST + 3 * PIECE);
    area_give_back(&area, first, 3 * PIECE);
    assert_int_equal(take(0, 2 * PIECE), first);
    assert_int_equal(reserved, 3 * PIECE);
}

static void wishes(void **state)
{
    (void)state;
    uint64_t wish = RESERVE_FIRST + 100 * PIECE;

    assert_int_equal(take(wish, PIECE), wish);
    assert_int_equal(take(wish, PIECE), wish + PIECE);
    assert_int_equal(take(RESERVE_END - PIECE, 2 * PIECE), RESERVE_FIRST);
    assert_int_equal(take(UINT64_MAX, PIECE), RESERVE_FIRST + 2 * PIECE);
}

static void passes_over_what_is_taken(void **state)
{
    (void)state;
    taken_elsewhere = RESERVE_FIRST;
    assert_int_equal(take(0, PIECE), RESERVE_FIRST + PIECE);
    assert_int_equal(reserved, PIECE);
}

static void an_end(void **state)
{
    uint64_t address, all = RESERVE_END - RESERVE_FIRST;

    (void)state;
    take(0, all);
    assert_int_equal(area_take(&area, 0, PIECE, PIECE, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(reserved, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(side_by_side_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(wishes, setup, teardown),
        cmocka_unit_test_setup_teardown(passes_over_what_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(an_end, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
