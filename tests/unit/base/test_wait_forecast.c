/* SPDX-License-Identifier: Apache-2.0 */
/* A forecast is the shortest of the last four waits. */
#include "wait_forecast.h"

#include "unit.h"

static void note_all(struct wait_forecast *forecast, uint64_t ns, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        wait_forecast_note(forecast, ns);
}

static void test_nothing_is_known_before_the_fourth_wait(void **state)
{
    struct wait_forecast forecast = {0};

    note_all(&forecast, 50, 3);
    assert_int_equal(wait_forecast_ns(&forecast), 0);
    wait_forecast_note(&forecast, 60);
    assert_int_equal(wait_forecast_ns(&forecast), 50);
}

static void test_shortest_of_the_last_four(void **state)
{
    struct wait_forecast forecast = {0};

    note_all(&forecast, 900, 4);
    wait_forecast_note(&forecast, 30);
    note_all(&forecast, 700, 3);
    assert_int_equal(wait_forecast_ns(&forecast), 30);
    wait_forecast_note(&forecast, 800);
    assert_int_equal(wait_forecast_ns(&forecast), 700);
}

static void test_waits_without_end(void **state)
{
    struct wait_forecast forecast = {0};

    note_all(&forecast, UINT64_MAX, 5);
    assert_int_equal(wait_forecast_ns(&forecast), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_before_the_fourth_wait),
        cmocka_unit_test(test_shortest_of_the_last_four),
        cmocka_unit_test(test_waits_without_end),
    };

    return cmocka_run_group_tests_name("wait_forecast", tests, NULL, NULL);
}
