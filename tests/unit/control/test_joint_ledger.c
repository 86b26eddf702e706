/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of joint limits: rows of several servers add up by key and device. */
#include "joint_ledger.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static struct joint_ledger ledger;

static int setup(void **state)
{
    memset(&ledger, 0, sizeof(ledger));
    return 0;
}

static void test_keys_differ(void **state)
{
    assert_true(joint_key(1, "a") == joint_key(1, "a"));
    assert_false(joint_key(1, "a") == joint_key(2, "a"));
    assert_false(joint_key(1, "a") == joint_key(1, "b"));
    assert_false(joint_key(1, "") == joint_key(1, "a"));
}

static void test_columns_are_the_same_for_all(void **state)
{
    uint8_t uuid[SERVER_MAX_DEVICES + 1][16] = {{0}};

    for (unsigned i = 0; i <= SERVER_MAX_DEVICES; i++)
        uuid[i][0] = (uint8_t)(i + 2);
    assert_int_equal(joint_ledger_column(&ledger, uuid[3]), 0);
    assert_int_equal(joint_ledger_column(&ledger, uuid[0]), 1);
    assert_int_equal(joint_ledger_column(&ledger, uuid[3]), 0);
    for (unsigned i = 0; i <= SERVER_MAX_DEVICES; i++)
        assert_true(joint_ledger_column(&ledger, uuid[i]) < SERVER_MAX_DEVICES);
}

static struct joint_row *add_row(int32_t server, uint64_t key, uint64_t used)
{
    struct joint_row *row = joint_ledger_take(&ledger, server);

    assert_non_null(row);
    row->key[JOINT_GROUP] = key;
    row->used[1] = used;
    return row;
}

static void test_rows_add_up(void **state)
{
    struct joint_row *first = add_row(getpid(), 7, 10);

    add_row(getppid(), 7, 20);
    add_row(getpid(), 8, 40);
    assert_int_equal(joint_ledger_sum(&ledger, JOINT_GROUP, 7, 1), 30);
    assert_int_equal(joint_ledger_sum(&ledger, JOINT_GROUP, 7, 0), 0);
    assert_int_equal(joint_ledger_sum(&ledger, JOINT_USER, 7, 1), 0);
    joint_ledger_give_back(first);
    assert_int_equal(joint_ledger_sum(&ledger, JOINT_GROUP, 7, 1), 20);
    assert_ptr_equal(add_row(getpid(), 7, 1), first);
}

static void test_rows_of_dead_servers_are_dropped(void **state)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    add_row(child, 7, 10);
    add_row(getpid(), 7, 20);
    assert_true(joint_ledger_drop_dead(&ledger));
    assert_int_equal(joint_ledger_sum(&ledger, JOINT_GROUP, 7, 1), 20);
    assert_false(joint_ledger_drop_dead(&ledger));
}

static void test_a_full_ledger(void **state)
{
    for (unsigned i = 0; i < JOINT_ROWS; i++)
        assert_non_null(joint_ledger_take(&ledger, getpid()));
    assert_null(joint_ledger_take(&ledger, getpid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_keys_differ, setup),
        cmocka_unit_test_setup(test_columns_are_the_same_for_all, setup),
        cmocka_unit_test_setup(test_rows_add_up, setup),
        cmocka_unit_test_setup(test_rows_of_dead_servers_are_dropped, setup),
        cmocka_unit_test_setup(test_a_full_ledger, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
