/* SPDX-License-Identifier: Apache-2.0 */
/* Servers report early while a client may wait for long kernels of another. */
#include "early_report.h"

#include "clock.h"
#include "unit.h"

static const struct usage_mark since = {.busy_ns = NS_PER_SEC, .launches = 100};

static struct server_usage usage_of(uint64_t busy_ms, uint64_t shared_ms, uint64_t launches)
{
    struct server_usage usage = {.shared_ns = shared_ms * NS_PER_MS, .launches = 100 + launches};

    usage.gpu_ns[0] = 400 * NS_PER_MS;
    usage.gpu_ns[1] = (600 + busy_ms) * NS_PER_MS;
    return usage;
}

static bool has_long_kernels(uint64_t busy_ms, uint64_t launches)
{
    struct server_usage usage = usage_of(busy_ms, 0, launches);

    return usage_has_long_kernels(&since, &usage);
}

static bool is_shared(uint64_t busy_ms, uint64_t shared_ms)
{
    struct server_usage usage = usage_of(busy_ms, shared_ms, 1);

    return usage_is_shared(&since, &usage);
}

static void test_long_kernels(void **state)
{
    assert_true(has_long_kernels(100, 50));
    assert_false(has_long_kernels(100, 51));
    assert_true(has_long_kernels(100, 0)); /* one that has not ended */
    assert_false(has_long_kernels(49, 1));
}

static void test_shared(void **state)
{
    assert_true(is_shared(100, 50));
    assert_false(is_shared(100, 49));
    assert_false(is_shared(49, 49));
}

static bool is_due(unsigned beats, bool told_signs, bool has_signs)
{
    const struct report_pace pace = {.beats = beats, .told_signs = told_signs};

    return report_pace_is_due(&pace, has_signs);
}

static void test_without_signs(void **state)
{
    assert_false(is_due(3, false, false));
    assert_true(is_due(4, false, false));
    assert_false(is_due(3, true, false));
    assert_true(is_due(4, true, false));
}

static void test_the_first_sign_is_told_at_once(void **state)
{
    assert_true(is_due(0, false, true));
    assert_false(is_due(1, true, true));
    assert_true(is_due(2, true, true));
}

/* Ten looks a heartbeat: as many reports as without signs, and one more for each of these. */
static void test_signs_that_come_and_go(void **state)
{
    struct report_pace pace = {.beats = 0};
    unsigned reports = 0;

    for (unsigned look = 0; look < 400; look++) {
        bool has_signs = look % 2;

        pace.beats += look % 10 == 0;
        if (!report_pace_is_due(&pace, has_signs))
            continue;
        pace = (struct report_pace){.told_signs = has_signs};
        reports++;
    }
    assert_in_range(reports, 10, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_kernels),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_without_signs),
        cmocka_unit_test(test_the_first_sign_is_told_at_once),
        cmocka_unit_test(test_signs_that_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
