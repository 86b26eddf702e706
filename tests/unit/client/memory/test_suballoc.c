/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator over address ranges: small cases by hand, then a long random walk beside a model.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "suballoc.h"

#define BASE UINT64_C(0x200000000000)
#define GRANULE (UINT64_C(32) << 20)

static void test_blocks_do_not_overlap_and_are_aligned(void **state)
{
    struct suballoc a;
    uint64_t first, second;

    suballoc_init(&a);
    assert_int_equal(suballoc_add_granule(&a, BASE, GRANULE), 0);
    first = suballoc_take(&a, 1, NULL);
    second = suballoc_take(&a, 513, NULL);
    assert_int_equal(first % SUBALLOC_ALIGNMENT, 0);
    assert_int_equal(second % SUBALLOC_ALIGNMENT, 0);
    assert_true(second >= first + 512 || second + 1024 <= first);
    assert_int_equal(a.free_bytes, GRANULE - 512 - 1024);
    suballoc_fini(&a);
}

static void test_given_blocks_join_again(void **state)
{
    struct suballoc a;
    uint64_t block[3];

    suballoc_init(&a);
    assert_int_equal(suballoc_add_granule(&a, BASE, 3 * 512), 0);
    for (int i = 0; i < 3; i++)
        block[i] = suballoc_take(&a, 512, NULL);
    assert_int_equal(suballoc_take(&a, 1, NULL), 0);
    assert_int_equal(suballoc_give(&a, block[0]), 0);
    assert_int_equal(suballoc_give(&a, block[2]), 0);
    assert_int_equal(suballoc_take(&a, 1024, NULL), 0);
    assert_int_equal(a.whole_free_bytes, 0);
    assert_int_equal(suballoc_give(&a, block[1]), 0);
    assert_int_equal(a.whole_free_bytes, 3 * 512);
    assert_int_equal(suballoc_take(&a, 3 * 512, NULL), BASE);
    suballoc_fini(&a);
}

static void test_adjacent_granules_stay_apart(void **state)
{
    struct suballoc a;
    uint64_t size;

    suballoc_init(&a);
    assert_int_equal(suballoc_add_granule(&a, BASE, 4096), 0);
    assert_int_equal(suballoc_add_granule(&a, BASE + 4096, 4096), 0);
    assert_int_equal(suballoc_take(&a, 8192, NULL), 0);
    assert_int_not_equal(suballoc_remove_free_granule(&a, &size), 0);
    assert_int_equal(size, 4096);
    assert_int_not_equal(suballoc_remove_free_granule(&a, &size), 0);
    assert_int_equal(suballoc_remove_free_granule(&a, &size), 0);
    suballoc_fini(&a);
}

static void test_wrong_addresses_are_refused(void **state)
{
    struct suballoc a;
    uint64_t block;

    suballoc_init(&a);
    assert_int_equal(suballoc_give(&a, BASE), -ENOENT);
    assert_int_equal(suballoc_add_granule(&a, BASE, GRANULE), 0);
    block = suballoc_take(&a, 4096, NULL);
    assert_int_equal(suballoc_give(&a, block + 512), -ENOENT);
    assert_int_equal(suballoc_give(&a, block - 1), -ENOENT);
    assert_int_equal(suballoc_give(&a, block), 0);
    assert_int_equal(suballoc_give(&a, block), -ENOENT);
    assert_int_equal(suballoc_take(&a, 0, NULL), 0);
    assert_int_equal(suballoc_take(&a, UINT64_MAX, NULL), 0);
    suballoc_fini(&a);
}

static void test_find_knows_the_bounds(void **state)
{
    struct suballoc_info info;
    struct suballoc a;
    int mark;

    suballoc_init(&a);
    assert_int_equal(suballoc_add_taken(&a, BASE, 4096, 1000, &mark), 0);
    assert_true(suballoc_find(&a, BASE + 999, &info));
    assert_int_equal(info.address, BASE);
    assert_int_equal(info.size, 1000);
    assert_ptr_equal(info.user, &mark);
    assert_false(suballoc_find(&a, BASE + 1000, &info));
    assert_false(suballoc_find(&a, BASE - 1, &info));
    suballoc_fini(&a);
}

struct model {
    uint64_t address, size;
};

static void check_no_overlap(const struct model *model, int n, uint64_t address, uint64_t size)
{
    for (int i = 0; i < n; i++)
        assert_true(address + size <= model[i].address ||
                    address >= model[i].address + model[i].size);
}

static uint64_t taken_bytes(const struct model *model, int n)
{
    uint64_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += (model[i].size + 511) & ~UINT64_C(511);
    return sum;
}

static void test_random_walk(void **state)
{
    struct model model[512];
    struct suballoc a;
    uint64_t size;
    int n = 0;

    srand(7);
    suballoc_init(&a);
    for (int i = 0; i < 4; i++)
        assert_int_equal(suballoc_add_granule(&a, BASE + i * GRANULE, GRANULE), 0);
    for (int step = 0; step < 20000; step++) {
        if (n < 512 && rand() % 2) {
            uint64_t want = 1 + (uint64_t)rand() % (1u << (rand() % 24));
            uint64_t address = suballoc_take(&a, want, NULL);

            if (!address)
                continue;
            assert_true(address >= BASE && address + want <= BASE + 4 * GRANULE);
            check_no_overlap(model, n, address, want);
            model[n++] = (struct model){address, want};
        } else if (n > 0) {
            int i = rand() % n;

            assert_int_equal(suballoc_give(&a, model[i].address), 0);
            model[i] = model[--n];
        }
        assert_int_equal(a.free_bytes, 4 * GRANULE - taken_bytes(model, n));
    }
    while (n > 0)
        assert_int_equal(suballoc_give(&a, model[--n].address), 0);
    assert_int_equal(a.whole_free_bytes, 4 * GRANULE);
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(suballoc_remove_free_granule(&a, &size), 0);
    assert_null(a.root);
    suballoc_fini(&a);
}

static void test_next_walks_in_order(void **state)
{
    struct suballoc_info info;
    struct suballoc a;
    uint64_t at = 0;
    int seen = 0;

    suballoc_init(&a);
    assert_int_equal(suballoc_add_granule(&a, BASE, GRANULE), 0);
    for (int i = 0; i < 10; i++)
        assert_int_not_equal(suballoc_take(&a, 100, NULL), 0);
    assert_int_equal(suballoc_give(&a, BASE + 3 * 512), 0);
    while (suballoc_next(&a, at, &info)) {
        assert_int_not_equal(info.address, BASE + 3 * 512);
        at = info.address + 1;
        seen++;
    }
    assert_int_equal(seen, 9);
    suballoc_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_do_not_overlap_and_are_aligned),
        cmocka_unit_test(test_given_blocks_join_again),
        cmocka_unit_test(test_adjacent_granules_stay_apart),
        cmocka_unit_test(test_wrong_addresses_are_refused),
        cmocka_unit_test(test_find_knows_the_bounds),
        cmocka_unit_test(test_random_walk),
        cmocka_unit_test(test_next_walks_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
