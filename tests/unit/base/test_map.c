/* SPDX-License-Identifier: Apache-2.0 */
/* The map against a plain array that holds the truth, over many random changes. */
#include "map.h"

#include <errno.h>

#include "unit.h"

#define KEYS 700u

/* Keys of several shapes: small numbers, pages, and only high bits. */
static uint64_t key_of(uint32_t i)
{
    return i % 3 == 0 ? i : i % 3 == 1 ? (uint64_t)i << 12 : (uint64_t)i << 40;
}

static void test_empty_map(void **state)
{
    struct map map = {0};
    size_t cursor = 0;
    assert_null(map_get(&map, 7));
    assert_null(map_remove(&map, 7));
    assert_null(map_next(&map, &cursor));
    map_fini(&map);
}

static void test_key_0_is_a_key(void **state)
{
    struct map map;
    int value;
    map_init(&map);
    assert_int_equal(map_put(&map, 0, &value), 0);
    assert_int_equal(map_put(&map, 0, &map), -EEXIST);
    assert_ptr_equal(map_get(&map, 0), &value);
    assert_ptr_equal(map_remove(&map, 0), &value);
    assert_null(map_get(&map, 0));
    map_fini(&map);
}

static void assert_same(const struct map *map, char *const *truth)
{
    size_t seen = 0, cursor = 0, expected = 0;
    while (map_next(map, &cursor))
        seen++;
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(map_get(map, key_of(i)), truth[i]);
        expected += truth[i] != NULL;
    }
    assert_int_equal(seen, expected);
    assert_int_equal(map->count, expected);
}

static void test_random_changes(void **state)
{
    static char *truth[KEYS];
    static char objects[KEYS];
    uint64_t random = 1;
    struct map map;
    map_init(&map);
    for (int round = 0; round < 40000; round++) {
        uint32_t i = unit_random(&random) % KEYS;
        if (unit_random(&random) % 2) {
            assert_int_equal(map_put(&map, key_of(i), &objects[i]), truth[i] ? -EEXIST : 0);
            truth[i] = &objects[i];
        } else {
            assert_ptr_equal(map_remove(&map, key_of(i)), truth[i]);
            truth[i] = NULL;
        }
        if (round % 400 == 0)
            assert_same(&map, truth);
    }
    assert_same(&map, truth);
    map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_map),
        cmocka_unit_test(test_key_0_is_a_key),
        cmocka_unit_test(test_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
