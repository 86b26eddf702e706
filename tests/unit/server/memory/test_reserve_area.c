/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of clients do not overlap, hints are followed, and a place that the process uses for
 * something else is skipped.
 */
#include "attach.h"
#include "fake_driver.h"
#include "reserve_area.h"

#define UNIT (2ull << 20)
#define SLAB ((RESERVE_END - RESERVE_FIRST) / 512)

static struct reserve_area area;
static uint64_t taken_elsewhere; /* in this process, by something else */
static uint64_t reserved;        /* bytes reserved with the driver */

static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                        unsigned long long flags)
{
    (void)alignment;
    (void)flags;
    *ptr = addr == taken_elsewhere || size < SLAB ? RESERVE_END : addr;
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
    reserve_area_init(&area);
    taken_elsewhere = reserved = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    reserve_area_fini(&area);
    return 0;
}

static uint64_t take(uint64_t from, uint64_t size)
{
    uint64_t address = 0;

    assert_int_equal(reserve_area_take(&area, from, size, UNIT, &address), CUDA_SUCCESS);
    return address;
}

static void side_by_side_and_back(void **state)
{
    (void)state;
    uint64_t first = take(0, 3 * UNIT), second = take(0, UNIT);

    assert_int_equal(first, RESERVE_FIRST);
    assert_int_equal(second, RESERVE_FIRST + 3 * UNIT);
    reserve_area_give_back(&area, first, 3 * UNIT);
    assert_int_equal(take(0, 2 * UNIT), first);
    assert_int_equal(reserved, SLAB);
}

static void hints_are_followed(void **state)
{
    (void)state;
    uint64_t wish = RESERVE_FIRST + 100 * UNIT;

    assert_int_equal(take(wish, UNIT), wish);
    assert_int_equal(take(wish, UNIT), wish + UNIT);
    assert_int_equal(take(RESERVE_END - UNIT, 2 * UNIT), RESERVE_FIRST);
    assert_int_equal(take(UINT64_MAX, UNIT), RESERVE_FIRST + 2 * UNIT);
}

static void taken_places_are_skipped(void **state)
{
    (void)state;
    taken_elsewhere = RESERVE_FIRST;
    assert_int_equal(take(0, UNIT), RESERVE_FIRST + SLAB);
    assert_int_equal(reserved, SLAB);
}

static void small_reservations_lie_in_one_slab(void **state)
{
    (void)state;
    assert_int_equal(take(RESERVE_FIRST + SLAB - UNIT, 2 * UNIT), RESERVE_FIRST + SLAB);
    assert_int_equal(take(RESERVE_FIRST + SLAB - UNIT, UNIT), RESERVE_FIRST + SLAB - UNIT);
    assert_int_equal(reserved, 2 * SLAB);
}

static void large_reservations_are_slabs_that_go_back(void **state)
{
    (void)state;
    assert_int_equal(take(0, UNIT), RESERVE_FIRST);
    assert_int_equal(take(0, SLAB / 2), RESERVE_FIRST + SLAB);
    assert_int_equal(take(0, SLAB + UNIT), RESERVE_FIRST + 2 * SLAB);
    assert_int_equal(reserved, 4 * SLAB);
    reserve_area_give_back(&area, RESERVE_FIRST, UNIT);
    reserve_area_give_back(&area, RESERVE_FIRST + SLAB, SLAB / 2);
    reserve_area_give_back(&area, RESERVE_FIRST + 2 * SLAB, SLAB + UNIT);
    assert_int_equal(reserved, SLAB);
    assert_int_equal(take(0, SLAB), RESERVE_FIRST + SLAB);
}

static void the_area_has_an_end(void **state)
{
    uint64_t address, all = RESERVE_END - RESERVE_FIRST;

    (void)state;
    take(0, all);
    assert_int_equal(reserve_area_take(&area, 0, UNIT, UNIT, &address), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(reserved, all);
}

/* Sixteen clients have 16 slabs each, a terabyte, before one meets the next. */
static void clients_are_far_from_each_other(void **state)
{
    const uint64_t apart = 16 * SLAB;

    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        uint64_t start = reserve_area_start(i);

        assert_true(start >= RESERVE_FIRST + apart && start < RESERVE_END);
        for (unsigned j = 0; j < i; j++) {
            uint64_t other = reserve_area_start(j);
            assert_true((start > other ? start - other : other - start) >= apart);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(side_by_side_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(hints_are_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(taken_places_are_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(small_reservations_lie_in_one_slab, setup, teardown),
        cmocka_unit_test_setup_teardown(large_reservations_are_slabs_that_go_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_area_has_an_end, setup, teardown),
        cmocka_unit_test(clients_are_far_from_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
