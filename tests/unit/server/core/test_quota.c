/* SPDX-License-Identifier: Apache-2.0 */
/* The table of quotas, and what an operator may write to change it. */
#include "quota.h"

#include <errno.h>
#include <stdlib.h>

#include "unit.h"

static void defaults_leave_room_for_others(void **state)
{
    (void)state;
    assert_int_equal(quotas_init(NULL), 0);
    assert_true(quota(QUOTA_HOST_MEMORY) > 0);
    assert_in_range(quota(QUOTA_RANGES), 1024, 65536);
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        assert_non_null(quota_name(i));
}

static void operators_change_some(void **state)
{
    (void)state;
    assert_int_equal(quotas_init("host-memory=64M,waits=7"), 0);
    assert_true(quota(QUOTA_HOST_MEMORY) == 64u << 20);
    assert_int_equal(quota(QUOTA_WAITS), 7);
}

static void what_is_wrong_changes_nothing(void **state)
{
    static const char *const wrong[] = {"waits",  "waits=",    "waits=0",       "waits=x",
                                        "wait=1", "waits=1,x", "host-memory=-1"};

    (void)state;
    assert_int_equal(quotas_init("waits=7"), 0);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(quotas_init(wrong[i]), -EINVAL);
        assert_int_equal(quota(QUOTA_WAITS), 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_leave_room_for_others),
        cmocka_unit_test(operators_change_some),
        cmocka_unit_test(what_is_wrong_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
