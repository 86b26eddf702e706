/* SPDX-License-Identifier: Apache-2.0 */
/* The names of lanes. */
#include "lane_name.h"

#include <string.h>

#include "unit.h"

static void check_name(bool is_batch, const char *domain, const char *name, const char *text)
{
    char lane[SERVER_NAME_MAX], service[SERVER_NAME_MAX];
    char other[SERVER_NAME_MAX], back[SERVER_NAME_MAX];

    lane_name("night", is_batch, domain, lane);
    assert_string_equal(lane, name);
    assert_string_equal(lane_text(lane), text);
    assert_int_equal(lane_name_is_batch(lane), is_batch);
    assert_int_equal(lane_name_is_main(lane), !is_batch && !*domain);
    lane_name_service(lane, service);
    assert_string_equal(service, "night");
    lane_name_other_class(lane, !is_batch, other);
    assert_int_equal(lane_name_is_batch(other), !is_batch);
    lane_name_other_class(other, is_batch, back);
    assert_string_equal(back, name);
}

static void test_names_of_a_service(void **state)
{
    check_name(false, "", "night", "main");
    check_name(true, "", "night:batch", "batch");
    check_name(false, "quarantine", "night:quarantine", "quarantine");
    check_name(true, "group_blue", "night:batch_group_blue", "batch_group_blue");
}

/* It is the lane of programs without a domain. */
static void test_the_spare_lane(void **state)
{
    char name[SERVER_NAME_MAX];

    lane_name("night", false, LANE_DOMAIN_SPARE, name);
    assert_string_equal(name, "night:spare");
    assert_true(lane_name_has_domain(name, LANE_DOMAIN_SPARE));
    lane_name_other_class("night:spare", false, name);
    assert_string_equal(name, "night");
    lane_name_other_class("night:spare", true, name);
    assert_string_equal(name, "night:batch");
}

static void test_the_longest_name(void **state)
{
    char longest[65], domain[LANE_DOMAIN_MAX], lane[SERVER_NAME_MAX], service[SERVER_NAME_MAX];

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memset(domain, 'd', sizeof(domain) - 1);
    domain[sizeof(domain) - 1] = '\0';
    lane_name(longest, true, domain, lane);
    assert_true(lane_name_is_batch(lane));
    assert_string_equal(lane_text(lane) + strlen("batch_"), domain);
    lane_name_service(lane, service);
    assert_string_equal(service, longest);
}

static void test_lanes_of_one_server(void **state)
{
    assert_true(lane_name_is_of("night", "night"));
    assert_true(lane_name_is_of("night:batch", "night"));
    assert_false(lane_name_is_of("night_batch", "night"));
    assert_false(lane_name_is_of("nights:batch", "night"));
    assert_false(lane_name_is_of("night:batch", "nights"));
}

static void check_domain(bool is_batch, const char *domain, bool is_quarantine, bool is_new)
{
    char lane[SERVER_NAME_MAX];

    lane_name("new_night", is_batch, domain, lane);
    assert_int_equal(lane_name_has_domain(lane, LANE_DOMAIN_QUARANTINE), is_quarantine);
    assert_int_equal(lane_name_has_domain(lane, LANE_DOMAIN_NEW), is_new);
}

static void test_kinds_of_domains(void **state)
{
    for (int is_batch = 0; is_batch <= 1; is_batch++) {
        check_domain(is_batch, "", false, false);
        check_domain(is_batch, "quarantine", true, false);
        check_domain(is_batch, "quarantine_1000", true, false);
        check_domain(is_batch, "new_0123456789abcdef", false, true);
        check_domain(is_batch, "news_0123456789abcdef", false, false);
        check_domain(is_batch, "group_new", false, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_a_service), cmocka_unit_test(test_the_spare_lane),
        cmocka_unit_test(test_the_longest_name),   cmocka_unit_test(test_lanes_of_one_server),
        cmocka_unit_test(test_kinds_of_domains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
