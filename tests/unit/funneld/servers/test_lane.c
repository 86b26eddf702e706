/* SPDX-License-Identifier: Apache-2.0 */
/* The names of lanes. */
#include "lane.h"

#include <string.h>

#include "unit.h"

static void test_names_of_a_service(void **state)
{
    char batch[SERVER_NAME_MAX], service[SERVER_NAME_MAX];

    lane_name_batch("night", batch);
    assert_string_equal(batch, "night:batch");
    lane_name_service(batch, service);
    assert_string_equal(service, "night");
    lane_name_service("night", service);
    assert_string_equal(service, "night");
}

static void test_the_longest_name(void **state)
{
    char longest[SERVER_NAME_MAX], batch[SERVER_NAME_MAX], service[SERVER_NAME_MAX];

    memset(longest, 'a', 64);
    longest[64] = '\0';
    lane_name_batch(longest, batch);
    assert_true(lane_name_is_batch(batch));
    lane_name_service(batch, service);
    assert_string_equal(service, longest);
}

static void test_which_lanes_belong_together(void **state)
{
    assert_true(lane_name_is_of("night", "night"));
    assert_true(lane_name_is_of("night:batch", "night"));
    assert_false(lane_name_is_of("night_batch", "night"));
    assert_false(lane_name_is_of("nights:batch", "night"));
    assert_false(lane_name_is_of("night:batch", "nights"));
    assert_false(lane_name_is_batch("uid_0_quarantine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_a_service),
        cmocka_unit_test(test_the_longest_name),
        cmocka_unit_test(test_which_lanes_belong_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
