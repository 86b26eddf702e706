/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a client: which the daemon may change, and when the session's thread has to follow. */
#include "session_limits.h"

#include "client_class.h"
#include "unit.h"

static const struct server_limits granted = {
    .sm_centipercent = 5000,
    .priority = 1,
    .memory_limit = {[0] = 1 << 20, [1] = 2 << 20},
    .fixed_device = 1,
    .fixed_first = 8,
    .fixed_count = 16,
    .fixed_only = 1,
    .class = CLASS_CRITICAL,
    .totals_show_limit = 1,
};

static void all_are_taken_over_at_first(void **state)
{
    struct session_limits limits = {0};

    (void)state;
    session_limits_init(&limits, &granted);
    const struct server_limits now = session_limits_get(&limits);
    assert_memory_equal(&now, &granted, sizeof(now));
    assert_true(limits.changed);
}

static void only_the_partition_never_changes(void **state)
{
    struct server_limits other = {.sm_centipercent = 10000};
    struct session_limits limits = {0};

    (void)state;
    session_limits_init(&limits, &granted);
    session_limits_set(&limits, &other);
    const struct server_limits now = session_limits_get(&limits);
    assert_int_equal(now.sm_centipercent, 10000);
    assert_int_equal(now.priority, 0);
    assert_int_equal(now.memory_limit[1], 0);
    assert_int_equal(now.fixed_count, 16);
    assert_int_equal(now.fixed_only, 1);
    assert_int_equal(now.class, other.class);
}

static void only_share_and_priority_move_streams(void **state)
{
    struct server_limits other = granted;
    struct session_limits limits = {0};

    (void)state;
    session_limits_init(&limits, &granted);
    limits.changed = 0;
    other.memory_limit[0] = 3 << 20;
    session_limits_set(&limits, &other);
    assert_int_equal(limits.memory[0], 3 << 20);
    assert_false(limits.changed);
    other.priority = 0;
    session_limits_set(&limits, &other);
    assert_true(limits.changed);
}

static void the_total_is_the_limit_where_that_is_less(void **state)
{
    struct server_limits other = granted;
    struct session_limits limits = {0};

    (void)state;
    session_limits_init(&limits, &granted);
    assert_int_equal(session_limits_shown_total(&limits, 1, 8 << 20), 2 << 20);
    assert_int_equal(session_limits_shown_total(&limits, 1, 1 << 20), 1 << 20);
    assert_int_equal(session_limits_shown_total(&limits, 2, 8 << 20), 8 << 20);
    other.memory_limit[1] = 3 << 20;
    other.totals_show_limit = 0;
    session_limits_set(&limits, &other);
    assert_int_equal(session_limits_shown_total(&limits, 1, 8 << 20), 3 << 20);
    session_limits_init(&limits, &other);
    assert_int_equal(session_limits_shown_total(&limits, 1, 8 << 20), 8 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_taken_over_at_first),
        cmocka_unit_test(only_the_partition_never_changes),
        cmocka_unit_test(only_share_and_priority_move_streams),
        cmocka_unit_test(the_total_is_the_limit_where_that_is_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
