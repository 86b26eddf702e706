/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of users and groups replace the limits of the server, the group's last. */
#include "limit_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client_class.h"
#include "unit.h"

#define GIB (1ull << 30)

static struct limit_rules rules;
static struct server_ready ready;

static int setup(void **state)
{
    memset(&rules, 0, sizeof(rules));
    memset(&ready, 0, sizeof(ready));
    ready.device_count = 2;
    ready.devices[0].sm_count = ready.devices[1].sm_count = 132;
    memset(ready.devices[1].uuid, 0xcd, 16);
    return 0;
}

static struct server_limits limits_of(uid_t uid, const char *group)
{
    struct server_identity identity = {.uid = uid};
    struct server_limits limits = {.sm_centipercent = 10000, .memory_limit = {8 * GIB, 8 * GIB}};

    strcpy(identity.group, group);
    limit_rules_apply(&rules, &identity, &ready, &limits);
    return limits;
}

static void test_a_user(void **state)
{
    struct limit_change change = {.sm_centipercent = 2500};

    assert_int_equal(limit_rules_set(&rules, "", 7, &change), 0);
    assert_int_equal(limits_of(7, "").sm_centipercent, 2500);
    assert_int_equal(limits_of(8, "").sm_centipercent, 10000);
    assert_int_equal(limits_of(8, "batch").sm_centipercent, 10000);
}

static void test_the_group_only_tightens(void **state)
{
    struct limit_change user = {.sm_centipercent = 2500, .sets_priority = true, .priority = 1};
    struct limit_change group = {.sms = 66, .sets_memory = true, .memory = 900 * GIB};
    struct server_limits limits;

    limit_rules_set(&rules, "", 7, &user);
    limit_rules_set(&rules, "batch", 0, &group);
    limits = limits_of(7, "batch");
    assert_int_equal(limits.sm_centipercent, 2500);
    assert_true(limits.memory_limit[0] == 8 * GIB);
    assert_int_equal(limits.priority, 1);
    assert_int_equal(limits_of(8, "batch").sm_centipercent, 5000);
    assert_int_equal(limits_of(8, "batch").priority, 0);
    assert_true(limit_rules_have_group(&rules, "batch"));
    assert_false(limit_rules_have_group(&rules, "other"));
    /* A group's rule does not bind the user whose id it was given with. */
    assert_int_equal(limits_of(0, "").sm_centipercent, 10000);
}

/* A client that names a group harms only those that oversubscribe, too. */
static void test_a_group_oversubscribes(void **state)
{
    struct limit_change group = {.sets_oversubscribe = true, .oversubscribe = true};
    struct limit_change user = {.sets_oversubscribe = true};

    limit_rules_set(&rules, "notebooks", 0, &group);
    limit_rules_set(&rules, "", 7, &user);
    assert_true(limits_of(8, "notebooks").oversubscribe);
    assert_true(limits_of(7, "notebooks").oversubscribe);
    assert_false(limits_of(8, "").oversubscribe);
    assert_false(limits_of(7, "").oversubscribe);
}

/* Of a program that runs, when the limits of its group change. */
static void test_the_user_bounds_the_group(void **state)
{
    struct limit_change user = {.sm_centipercent = 1000, .sets_memory = true, .memory = GIB};
    struct server_limits of_server = {.sm_centipercent = 5000, .memory_limit = {0, 8 * GIB}};
    struct server_limits limits = {.sm_centipercent = 9000, .memory_limit = {0, 2 * GIB}};
    struct server_limits others = limits;

    limit_rules_set(&rules, "", 7, &user);
    limit_rules_bound(&rules, 7, &ready, &of_server, &limits);
    assert_int_equal(limits.sm_centipercent, 1000);
    assert_true(limits.memory_limit[0] == GIB && limits.memory_limit[1] == GIB);
    limit_rules_bound(&rules, 8, &ready, &of_server, &others);
    assert_int_equal(others.sm_centipercent, 5000);
    assert_true(others.memory_limit[0] == 0 && others.memory_limit[1] == 2 * GIB);
}

static void test_changes_add_up(void **state)
{
    struct limit_change share = {.sm_centipercent = 2500};
    struct limit_change memory = {.sets_memory = true, .memory = GIB, .device = "1"};
    struct server_limits limits;

    limit_rules_set(&rules, "", 7, &share);
    limit_rules_set(&rules, "", 7, &memory);
    assert_int_equal(rules.count, 1);
    limits = limits_of(7, "");
    assert_int_equal(limits.sm_centipercent, 2500);
    assert_true(limits.memory_limit[0] == 8 * GIB);
    assert_true(limits.memory_limit[1] == GIB);
}

static void test_a_static_partition_keeps_its_multiprocessors(void **state)
{
    struct limit_change change = {.sms = 8};
    struct server_limits limits = {.sm_centipercent = 10000, .fixed_only = 1};

    limit_change_apply(&change, &ready, &limits);
    assert_int_equal(limits.sm_centipercent, 10000);
}

static uint32_t class_of(uid_t uid, const char *group, uint32_t of_space, uint32_t asked)
{
    struct server_identity identity = {.uid = uid};

    strcpy(identity.group, group);
    return limit_rules_class(&rules, &identity, of_space, asked);
}

static void test_the_lowest_class_counts(void **state)
{
    struct limit_change user = {.class = CLASS_NORMAL}, group = {.class = CLASS_BATCH};

    assert_int_equal(class_of(7, "", CLASS_UNSET, CLASS_UNSET), CLASS_NORMAL);
    assert_int_equal(class_of(7, "", CLASS_CRITICAL, CLASS_UNSET), CLASS_CRITICAL);
    limit_rules_set(&rules, "", 7, &user);
    limit_rules_set(&rules, "nightly", 0, &group);
    assert_int_equal(class_of(7, "", CLASS_CRITICAL, CLASS_CRITICAL), CLASS_NORMAL);
    assert_int_equal(class_of(7, "", CLASS_BATCH, CLASS_CRITICAL), CLASS_BATCH);
    assert_int_equal(class_of(7, "nightly", CLASS_UNSET, CLASS_UNSET), CLASS_BATCH);
    assert_int_equal(class_of(8, "nightly", CLASS_UNSET, CLASS_CRITICAL), CLASS_BATCH);
    assert_int_equal(class_of(8, "", CLASS_UNSET, CLASS_CRITICAL), CLASS_CRITICAL);
    /* A group's rule does not bind the user whose id it was given with. */
    assert_int_equal(class_of(0, "", CLASS_UNSET, CLASS_CRITICAL), CLASS_CRITICAL);
}

static void test_joint_limits(void **state)
{
    struct limit_change user = {.sets_joint = true, .joint = 6 * GIB};
    struct limit_change group = {.sets_joint = true, .joint = 4 * GIB, .joint_device = "1"};
    struct limit_change lifted = {.sets_joint = true};
    struct server_limits limits;

    limit_rules_set(&rules, "", 7, &user);
    limit_rules_set(&rules, "batch", 0, &group);
    limits = limits_of(7, "batch");
    assert_true(limits.joint[JOINT_USER].memory[0] == 6 * GIB);
    assert_true(limits.joint[JOINT_GROUP].memory[0] == 0);
    assert_true(limits.joint[JOINT_GROUP].memory[1] == 4 * GIB);
    assert_false(limits.joint[JOINT_GROUP].key == limits_of(8, "batch").joint[JOINT_GROUP].key);
    assert_true(limits_of(7, "").joint[JOINT_USER].key == limits.joint[JOINT_USER].key);
    assert_true(limits_of(7, "").joint[JOINT_GROUP].key == 0);
    assert_true(limits_of(8, "").joint[JOINT_USER].key == 0);
    limit_rules_set(&rules, "", 7, &lifted);
    assert_true(limits_of(7, "batch").joint[JOINT_USER].key == 0);
}

static void test_capacity(void **state)
{
    struct limit_change change = {.sm_centipercent = 100};

    for (uid_t uid = 0; uid < LIMIT_RULES_MAX; uid++)
        assert_int_equal(limit_rules_set(&rules, "", uid, &change), 0);
    assert_int_equal(limit_rules_set(&rules, "", LIMIT_RULES_MAX, &change), -ENOSPC);
    assert_int_equal(limit_rules_set(&rules, "", 5, &change), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_user, setup),
        cmocka_unit_test_setup(test_the_group_only_tightens, setup),
        cmocka_unit_test_setup(test_a_group_oversubscribes, setup),
        cmocka_unit_test_setup(test_the_user_bounds_the_group, setup),
        cmocka_unit_test_setup(test_changes_add_up, setup),
        cmocka_unit_test_setup(test_a_static_partition_keeps_its_multiprocessors, setup),
        cmocka_unit_test_setup(test_the_lowest_class_counts, setup),
        cmocka_unit_test_setup(test_joint_limits, setup),
        cmocka_unit_test_setup(test_capacity, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
