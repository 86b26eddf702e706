/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of programs: what is kept, how samples become coarser ones, and the bounds of all. */
#include "usage_history.h"

#include <string.h>

#include "unit.h"

#define CLIENTS_MAX 300u

static struct server_status_row rows[CLIENTS_MAX];
static struct status_report report = {.clients = rows};
static const struct status_query query = {.report_count = 1, .reports = &report};

/* Clients 1 to `count` of one server, which has 10 multiprocessors, hold so many bytes each. */
static void sample(unsigned count, uint64_t bytes)
{
    report.server.pid = 100;
    report.server.device_count = 1;
    report.server.responding = 1;
    report.server.devices[0].sm_count = 10;
    report.client_count = count;
    for (unsigned i = 0; i < count; i++) {
        rows[i].id = i + 1;
        rows[i].identity.pid = 1000 + (int)i;
        rows[i].device_mask = 1;
        rows[i].memory_used[0] = bytes;
        rows[i].usage.sm_ns[0] += 1000000000;
    }
    usage_history_sample(&query);
}

static int teardown(void **state)
{
    sample(0, 0);
    usage_history_stop();
    memset(rows, 0, sizeof(rows));
    return 0;
}

static unsigned count_samples(enum history_range range, const struct history_sample **ret_last)
{
    unsigned count = 0;
    const struct history_sample *next;

    *ret_last = NULL;
    for (double time = 0; (next = usage_history_next(range, time)); time = next->time) {
        *ret_last = next;
        count++;
    }
    return count;
}

static void test_periods(void **state)
{
    assert_int_equal(usage_history_period(HISTORY_MINUTES), 2);
    assert_int_equal(usage_history_period(HISTORY_HOUR), 24);
    assert_int_equal(usage_history_period(HISTORY_DAY), 576);
}

static void test_coarser_samples_are_means(void **state)
{
    const struct history_sample *last;

    for (unsigned i = 0; i < 12; i++)
        sample(1, i < 6 ? 0 : 100);
    assert_int_equal(count_samples(HISTORY_HOUR, &last), 1);
    assert_int_equal(last->count, 1);
    assert_true(last->entries[0].memory > 49.9 && last->entries[0].memory < 50.1);
    sample(1, 7);
    assert_int_equal(count_samples(HISTORY_HOUR, &last), 2);
    assert_true(last->entries[0].memory == 7);
    assert_int_equal(count_samples(HISTORY_MINUTES, &last), 13);
}

static void test_a_program_that_came_and_went_is_in_the_day(void **state)
{
    const struct history_sample *last;

    sample(1, 288);
    for (unsigned i = 1; i < 288; i++)
        sample(0, 0);
    assert_int_equal(count_samples(HISTORY_DAY, &last), 1);
    assert_int_equal(last->count, 1);
    assert_true(last->entries[0].memory > 0.99 && last->entries[0].memory < 1.01);
    assert_int_equal(usage_history_program(last->entries[0].program)->pid, 1000);
    assert_null(usage_history_find(100, &rows[0]));
}

static void test_the_number_of_samples_is_bounded(void **state)
{
    const struct history_sample *last;

    for (unsigned i = 0; i < 12 * HISTORY_SAMPLES + 24; i++)
        sample(1, 1);
    assert_int_equal(count_samples(HISTORY_MINUTES, &last), HISTORY_SAMPLES);
    assert_int_equal(count_samples(HISTORY_HOUR, &last), HISTORY_SAMPLES);
}

/* As many as have an entry of their own, and one for the rest. */
static void test_many_programs(void **state)
{
    const struct history_sample *last;
    double memory = 0;

    sample(CLIENTS_MAX, 3);
    count_samples(HISTORY_MINUTES, &last);
    assert_true(last->count < CLIENTS_MAX);
    for (unsigned i = 0; i < last->count; i++)
        memory += last->entries[i].memory;
    assert_true(memory == 3 * CLIENTS_MAX);
    assert_int_equal(last->entries[last->count - 1].program, 0);
    assert_null(usage_history_program(0));
}

static void test_running_programs_have_colors_of_their_own(void **state)
{
    unsigned used = 0;

    sample(HISTORY_COLORS, 1);
    for (unsigned i = 0; i < HISTORY_COLORS; i++)
        used |= 1u << usage_history_find(100, &rows[i])->color;
    assert_int_equal(used, (1u << HISTORY_COLORS) - 1);
}

static void test_a_gpu_gives_no_more_than_it_has(void **state)
{
    const struct history_sample *last;
    double sms = 0;

    assert_true(usage_history_gpu_sms((const uint8_t[16]){1}) < 0);
    sample(3, 1);
    sample(3, 1);
    count_samples(HISTORY_MINUTES, &last);
    for (unsigned i = 0; i < last->count; i++)
        sms += last->entries[i].sms;
    assert_true(sms > 9.99 && sms < 10.01);
    assert_true(usage_history_gpu_sms((const uint8_t[16]){0}) == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_periods, teardown),
        cmocka_unit_test_teardown(test_coarser_samples_are_means, teardown),
        cmocka_unit_test_teardown(test_a_program_that_came_and_went_is_in_the_day, teardown),
        cmocka_unit_test_teardown(test_the_number_of_samples_is_bounded, teardown),
        cmocka_unit_test_teardown(test_many_programs, teardown),
        cmocka_unit_test_teardown(test_running_programs_have_colors_of_their_own, teardown),
        cmocka_unit_test_teardown(test_a_gpu_gives_no_more_than_it_has, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
