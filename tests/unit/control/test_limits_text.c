/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and limits in words. */
#include "limits_text.h"

#include <string.h>

#include "unit.h"

static void test_limits(void **state)
{
    struct server_limits limits = {.sm_centipercent = 2550};
    char text[LIMITS_TEXT_MAX];

    (void)state;
    limits_describe(&limits, 2, text);
    assert_string_equal(text, "25.5 % of the SMs, normal priority");
    limits.priority = 1;
    limits.memory_limit[1] = 64u << 20;
    limits_describe(&limits, 2, text);
    assert_string_equal(text,
                        "25.5 % of the SMs, below normal priority, at most 64 MiB of device 1");
    limits.fixed_only = 1;
    limits_describe(&limits, 1, text);
    assert_string_equal(text, "no context, being in no static partition, below normal priority");
    limits.fixed_count = 16;
    limits_describe(&limits, 1, text);
    assert_string_equal(text, "a static partition of 16 SMs on device 0, below normal priority");
}

static void test_many_devices(void **state)
{
    struct server_limits limits = {.sm_centipercent = 10000};
    char text[LIMITS_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        limits.memory_limit[i] = UINT64_MAX;
    limits_describe(&limits, SERVER_MAX_DEVICES, text);
    assert_true(strlen(text) < LIMITS_TEXT_MAX);
}

static void test_identity(void **state)
{
    struct server_identity identity = {.uid = 1000, .command = "./train --fast"};
    char text[IDENTITY_TEXT_MAX];

    (void)state;
    identity_describe(&identity, text);
    assert_string_equal(text, "user 1000: ./train --fast");
    strcpy(identity.group, "batch");
    strcpy(identity.space, "night");
    identity_describe(&identity, text);
    assert_string_equal(text, "user 1000, group batch, namespace night: ./train --fast");
    memset(identity.command, 'x', sizeof(identity.command));
    identity_describe(&identity, text);
    assert_string_equal(text, "user 1000, group batch, namespace night: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_devices),
        cmocka_unit_test(test_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
