/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that lie side by side share pages, and foreign memory is left alone. */
#include "managed_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

static struct managed_pages pages;
static uint64_t page, place;

/* A place where there is nothing: eight pages. */
static int setup(void **state)
{
    void *free_place;

    (void)state;
    page = (uint64_t)sysconf(_SC_PAGESIZE);
    free_place = mmap(NULL, 8 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (free_place == MAP_FAILED || munmap(free_place, 8 * page))
        return -1;
    place = (uintptr_t)free_place;
    memset(&pages, 0, sizeof(pages));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ranges_fini(&pages.areas);
    return 0;
}

static bool is_mapped(uint64_t address)
{
    unsigned char resident;

    return mincore((void *)(uintptr_t)(address & ~(page - 1)), 1, &resident) == 0;
}

static unsigned char *at(uint64_t address)
{
    return (unsigned char *)(uintptr_t)address;
}

static void a_page_goes_with_its_last_user(void **state)
{
    (void)state;
    assert_int_equal(managed_pages_take(&pages, place + 100, 4), 0);
    *at(place + 100) = 7;
    assert_int_equal(managed_pages_take(&pages, place + 104, 8), 0);
    assert_int_equal(*at(place + 100), 7);
    managed_pages_give(&pages, place + 100, 4);
    assert_true(is_mapped(place));
    managed_pages_give(&pages, place + 104, 8);
    assert_false(is_mapped(place));
}

static void ranges_overlap_in_any_way(void **state)
{
    (void)state;
    assert_int_equal(managed_pages_take(&pages, place + 2 * page, page), 0);
    assert_int_equal(managed_pages_take(&pages, place + 5 * page - 4, 8), 0);
    assert_int_equal(managed_pages_take(&pages, place + 1, 7 * page), 0);
    memset(at(place), 1, 8 * page);
    managed_pages_give(&pages, place + 2 * page, page);
    managed_pages_give(&pages, place + 5 * page - 4, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_true(is_mapped(place + i * page) && *at(place + i * page) == 1);
    managed_pages_give(&pages, place + 1, 7 * page);
    for (unsigned i = 0; i < 8; i++)
        assert_false(is_mapped(place + i * page));
    assert_int_equal(pages.areas.count, 0);
}

static void present_pages_stay(void **state)
{
    void *other =
        mmap(at(place + 3 * page), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    (void)state;
    assert_ptr_equal(other, at(place + 3 * page));
    assert_int_equal(managed_pages_take(&pages, place, page), 0);
    assert_int_equal(managed_pages_take(&pages, place, 8 * page), -EEXIST);
    assert_true(is_mapped(place) && is_mapped(place + 3 * page));
    assert_false(is_mapped(place + 2 * page));
    managed_pages_give(&pages, place, page);
    assert_false(is_mapped(place));
    munmap(other, page);
}

static uint64_t filled, emptied;
static int refusal;

static int fill(uint64_t start, uint64_t size)
{
    filled += refusal ? 0 : size;
    return refusal;
}

static void empty(uint64_t start, uint64_t size)
{
    assert_true(is_mapped(start));
    emptied += size;
}

static void areas_are_filled_and_emptied(void **state)
{
    (void)state;
    pages.fill = fill;
    pages.empty = empty;
    assert_int_equal(managed_pages_take(&pages, place + 100, page), 0);
    assert_int_equal(managed_pages_take(&pages, place + 2 * page - 4, 8), 0);
    assert_int_equal(filled, 3 * page);
    refusal = -ENOMEM;
    assert_int_equal(managed_pages_take(&pages, place + 2 * page, 2 * page), -ENOMEM);
    assert_false(is_mapped(place + 3 * page));
    managed_pages_give(&pages, place + 100, page);
    assert_int_equal(emptied, 0);
    managed_pages_give(&pages, place + 2 * page - 4, 8);
    assert_int_equal(emptied, 3 * page);
    assert_false(is_mapped(place));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_goes_with_its_last_user, setup, teardown),
        cmocka_unit_test_setup_teardown(ranges_overlap_in_any_way, setup, teardown),
        cmocka_unit_test_setup_teardown(present_pages_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(areas_are_filled_and_emptied, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
