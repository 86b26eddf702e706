/* SPDX-License-Identifier: Apache-2.0 */
/* The table of quotas: its defaults, and what an operator may write to change it. */
#include "quota_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "unit.h"

static struct quotas quotas;
static char reason[QUOTA_REASON_MAX];

static int setup(void **state)
{
    (void)state;
    quotas_init(&quotas);
    return 0;
}

static void defaults_are_within_bounds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        assert_non_null(quota_rows[i].name);
        assert_non_null(quota_rows[i].about);
        assert_in_range(quotas.value[i], quota_rows[i].least, quota_rows[i].most);
    }
}

static void operators_change_some(void **state)
{
    (void)state;
    assert_int_equal(quotas_change(&quotas, "host-memory=64M,waits=7,log=2K", reason), 0);
    assert_true(quotas.value[QUOTA_HOST_MEMORY] == 64u << 20);
    assert_int_equal(quotas.value[QUOTA_WAITS], 7);
    assert_int_equal(quotas.value[QUOTA_LOG], 2048);
    assert_int_equal(quotas_change(&quotas, "kept-memory=0", reason), 0);
    assert_int_equal(quotas.value[QUOTA_KEPT_MEMORY], 0);
}

static void a_change_is_taken_back(void **state)
{
    struct quotas before = quotas;

    (void)state;
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        quotas.value[i] = 1;
    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        char change[64];

        snprintf(change, sizeof(change), "%s=default", quota_rows[i].name);
        assert_int_equal(quotas_change(&quotas, change, reason), 0);
    }
    assert_memory_equal(&quotas, &before, sizeof(before));
}

static void wrong_quotas_change_nothing(void **state)
{
    static const char *const wrong[] = {
        "waits",           "waits=",         "waits=0",         "waits=x",           "wait=1",
        "waits=1,x",       "host-memory=-1", "host-memory=64",  "waits=1048577",     "waits=8G",
        "host-memory=15M", "attaches=1.5",   "waits=1,waits=0", "host-memory=9999G9"};
    struct quotas before = quotas;

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        *reason = '\0';
        assert_int_equal(quotas_change(&quotas, wrong[i], reason), -EINVAL);
        assert_int_not_equal(*reason, '\0');
        assert_memory_equal(&quotas, &before, sizeof(before));
    }
}

static void bounds_are_explained(void **state)
{
    (void)state;
    quotas_change(&quotas, "host-memory=15M", reason);
    assert_string_equal(reason, "The quota host-memory is 16M to 1048576G (bytes), not \"15M\"");
    quotas_change(&quotas, "nothing=1", reason);
    assert_string_equal(reason, "There is no quota \"nothing\"; funnel limits shows them");
}

static void values_are_written_as_they_are_read(void **state)
{
    char text[QUOTA_TEXT_MAX];

    (void)state;
    quota_value_text(QUOTA_BYTES, 8ull << 30, text);
    assert_string_equal(text, "8G");
    quota_value_text(QUOTA_BYTES, 1536ull << 20, text);
    assert_string_equal(text, "1536M");
    quota_value_text(QUOTA_NUMBER, 1024, text);
    assert_string_equal(text, "1024");
    quota_value_text(QUOTA_BYTES, 0, text);
    assert_string_equal(text, "0");
}

static uint64_t ranges_with(rlim_t descriptors)
{
    const struct rlimit limit = {.rlim_cur = descriptors, .rlim_max = descriptors};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    quotas_init(&quotas);
    return quotas.value[QUOTA_RANGES];
}

/* Falling limits, since none may be raised again. */
static void ranges_leave_descriptors(void **state)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max >= 16384) {
        assert_int_equal(ranges_with(16384), 2048);
        assert_int_equal(ranges_with(8192), 1024);
    }
    assert_int_equal(ranges_with(4096), 1024);
    assert_int_equal(ranges_with(1024), 256);
    assert_int_equal(ranges_with(48), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_within_bounds, setup),
        cmocka_unit_test_setup(operators_change_some, setup),
        cmocka_unit_test_setup(a_change_is_taken_back, setup),
        cmocka_unit_test_setup(wrong_quotas_change_nothing, setup),
        cmocka_unit_test_setup(bounds_are_explained, setup),
        cmocka_unit_test_setup(values_are_written_as_they_are_read, setup),
        cmocka_unit_test(ranges_leave_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
