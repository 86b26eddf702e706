/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that operators set and those that a client asks for are combined. */
#include "client_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define GIB (1ull << 30)

static struct server_ready two_devices(void)
{
    struct server_ready ready = {.device_count = 2};

    memset(ready.devices[0].uuid, 0xab, 16);
    memset(ready.devices[1].uuid, 0xcd, 16);
    return ready;
}

static void grant(const struct limits *limits, const struct server_ready *ready,
                  const struct hello *hello, uint32_t priority, struct server_limits *ret_limits)
{
    limits_of_server(limits, priority, ready, ret_limits);
    limits_tighten(ret_limits, hello, ready);
}

static void test_names_of_devices(void **state)
{
    struct server_ready ready = two_devices();
    struct hello hello = {.priority = HELLO_PRIORITY_UNSET};
    struct limits limits = {.sm_centipercent = 10000};
    struct server_limits result;

    limits_set_memory(&limits, "0", 4 * GIB, "4G");
    limits_set_memory(&limits, "GPU-abab", 2 * GIB, "2G");
    limits_set_memory(&limits, "GPU-cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd", 3 * GIB, "3G");
    limits_set_memory(&limits, "7", 1 * GIB, "1G");
    limits_set_memory(&limits, "GPU-", 1 * GIB, "1G");
    grant(&limits, &ready, &hello, 0, &result);
    assert_true(result.memory_limit[0] == 2 * GIB); /* the last that was set */
    assert_true(result.memory_limit[1] == 3 * GIB);
    assert_true(result.memory_limit[2] == 0);
    limits_set_memory(&limits, "0", 5 * GIB, "5G");
    grant(&limits, &ready, &hello, 0, &result);
    assert_true(result.memory_limit[0] == 5 * GIB);
    assert_int_equal(limits.device_count, 5);
}

static void test_a_client_only_tightens(void **state)
{
    struct server_ready ready = two_devices();
    struct hello hello = {.sm_centipercent = 9000, .priority = 0, .memory_limit = {8 * GIB, GIB}};
    struct limits limits = {.sm_centipercent = 5000};
    struct server_limits result;

    limits_set_memory(&limits, "0", 4 * GIB, "4G");
    grant(&limits, &ready, &hello, 1, &result);
    assert_int_equal(result.sm_centipercent, 5000);
    assert_int_equal(result.priority, 0);
    assert_true(result.memory_limit[0] == 4 * GIB);
    assert_true(result.memory_limit[1] == GIB);
    hello.sm_centipercent = 100;
    hello.priority = HELLO_PRIORITY_UNSET;
    grant(&limits, &ready, &hello, 1, &result);
    assert_int_equal(result.sm_centipercent, 100);
    assert_int_equal(result.priority, 1);
}

static void test_a_client_chooses_what_totals_show(void **state)
{
    struct server_ready ready = two_devices();
    struct hello hello = {.totals = HELLO_TOTALS_UNSET};
    struct limits limits = {.sm_centipercent = 10000, .totals_show_limit = true};
    struct server_limits result;

    grant(&limits, &ready, &hello, 0, &result);
    assert_int_equal(result.totals_show_limit, 1);
    hello.totals = HELLO_TOTALS_DEVICE;
    grant(&limits, &ready, &hello, 0, &result);
    assert_int_equal(result.totals_show_limit, 0);
    limits.totals_show_limit = false;
    hello.totals = HELLO_TOTALS_LIMIT;
    grant(&limits, &ready, &hello, 0, &result);
    assert_int_equal(result.totals_show_limit, 1);
    hello.totals = 77;
    grant(&limits, &ready, &hello, 0, &result);
    assert_int_equal(result.totals_show_limit, 0);
}

static void test_room_for_devices(void **state)
{
    struct limits limits = {.sm_centipercent = 10000};
    char name[8];

    for (int i = 0; i < DEVICE_LIMITS_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(limits_set_memory(&limits, name, GIB, "1G"), 0);
    }
    assert_int_equal(limits_set_memory(&limits, "more", GIB, "1G"), -ENOSPC);
    assert_int_equal(limits_set_memory(&limits, "5", 2 * GIB, "2G"), 0);
    assert_string_equal(limits_memory_text(&limits, "5"), "2G");
    assert_null(limits_memory_text(&limits, "more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_devices),
        cmocka_unit_test(test_a_client_only_tightens),
        cmocka_unit_test(test_a_client_chooses_what_totals_show),
        cmocka_unit_test(test_room_for_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
