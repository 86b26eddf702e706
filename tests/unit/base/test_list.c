/* SPDX-License-Identifier: Apache-2.0 */
/* The list keeps its order, whatever is put in or taken out where. */
#include "list.h"

#include "unit.h"

struct item {
    int value;
    struct list link;
};

static void assert_values(struct list *list, const int *values, int count)
{
    int at = 0;
    list_for_each (struct item, item, list, link) {
        assert_true(at < count);
        assert_int_equal(item->value, values[at++]);
    }
    assert_int_equal(at, count);
}

static void test_order(void **state)
{
    struct list list;
    struct item items[] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    list_init(&list);
    assert_true(list_empty(&list));
    assert_null(list_first(&list, struct item, link));
    list_append(&list, &items[1].link);
    list_append(&list, &items[3].link);
    list_insert(&list, &items[0].link);
    list_insert(&items[1].link, &items[2].link);
    assert_values(&list, (int[]){0, 1, 2, 3}, 4);
    assert_ptr_equal(list_first(&list, struct item, link), &items[0]);
}

static void test_removing_twice_does_nothing(void **state)
{
    struct list list;
    struct item items[] = {{.value = 0}, {.value = 1}};
    list_init(&list);
    list_append(&list, &items[0].link);
    list_append(&list, &items[1].link);
    list_remove(&items[0].link);
    list_remove(&items[0].link);
    assert_values(&list, (int[]){1}, 1);
    list_remove(&items[1].link);
    assert_true(list_empty(&list));
}

static void test_safe_walk_may_remove_its_item(void **state)
{
    struct list list;
    struct item items[6];
    list_init(&list);
    for (int i = 0; i < 6; i++) {
        items[i].value = i;
        list_append(&list, &items[i].link);
    }
    list_for_each_safe (struct item, item, &list, link)
        if (item->value % 2 == 0)
            list_remove(&item->link);
    assert_values(&list, (int[]){1, 3, 5}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_removing_twice_does_nothing),
        cmocka_unit_test(test_safe_walk_may_remove_its_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
