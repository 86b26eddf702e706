/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by server, user and group: no user's names take the place of another's. */
#include "usage_totals.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

#define MINE 4294960001u /* no subordinate ID */
#define THEIRS 4294960002u

static struct usage_totals totals;

static int setup(void **state)
{
    memset(&totals, 0, sizeof(totals));
    return 0;
}

static struct usage_total *find(uid_t uid, const char *format, unsigned number)
{
    char group[HELLO_GROUP_MAX] = "";

    snprintf(group, sizeof(group), format, number);
    return usage_totals_find(&totals, "server", uid, group);
}

static void each_has_its_own(void **state)
{
    struct usage_total *night = find(MINE, "night%u", 1);

    assert_ptr_equal(find(MINE, "night%u", 1), night);
    assert_ptr_not_equal(find(MINE, "night%u", 2), night);
    assert_ptr_not_equal(find(THEIRS, "night%u", 1), night);
    assert_int_equal(totals.count, 3);
}

static void many_groups_are_one_users_loss(void **state)
{
    for (unsigned i = 0; i < 5000; i++)
        find(MINE, "group%u", i)->clients++;
    assert_int_equal(totals.count, USAGE_TOTALS_OF_OWNER_MAX + 1);
    assert_string_equal(find(THEIRS, "night%u", 1)->group, "night1");
    assert_string_equal(find(MINE, "group%u", 3)->group, "group3");

    const struct usage_total *rest = find(MINE, "another%u", 1);
    assert_string_equal(rest->group, "(others)");
    assert_int_equal(rest->uid, MINE);
    assert_int_equal(rest->clients, 5000 - USAGE_TOTALS_OF_OWNER_MAX);
}

static void many_users_share_the_last(void **state)
{
    for (uid_t uid = 0; uid < 5000; uid++)
        find(4294900000u + uid, "group%u", 1)->clients++;
    assert_int_equal(totals.count, USAGE_TOTALS_MAX);

    const struct usage_total *last = &totals.total[USAGE_TOTALS_MAX - 1];
    assert_string_equal(last->group, "(others)");
    assert_int_equal(last->clients, 5000 - (USAGE_TOTALS_MAX - 1));
    assert_ptr_equal(find(MINE, "night%u", 1), last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_has_its_own, setup),
        cmocka_unit_test_setup(many_groups_are_one_users_loss, setup),
        cmocka_unit_test_setup(many_users_share_the_last, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
