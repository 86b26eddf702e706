/* SPDX-License-Identifier: Apache-2.0 */
/* Servers report early while a client may wait for long kernels of another. */
#include "early_report.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "accounting_state.h"
#include "clock.h"
#include "server_life.h"
#include "unit.h"

static const struct usage_mark since = {.busy_ns = NS_PER_SEC, .launches = 100};

static struct usage_mark mark_of(uint64_t busy_ms, uint64_t shared_ms, uint64_t launches)
{
    struct server_usage usage = {.shared_ns = shared_ms * NS_PER_MS, .launches = 100 + launches};

    usage.gpu_ns[0] = 400 * NS_PER_MS;
    usage.gpu_ns[1] = (600 + busy_ms) * NS_PER_MS;
    return usage_mark_of(&usage);
}

static bool has_long_kernels(uint64_t busy_ms, uint64_t launches)
{
    struct usage_mark now = mark_of(busy_ms, 0, launches);

    return usage_has_long_kernels(&since, &now);
}

static bool is_shared(uint64_t busy_ms, uint64_t shared_ms)
{
    struct usage_mark now = mark_of(busy_ms, shared_ms, 1);

    return usage_is_shared(&since, &now);
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

static bool is_due(struct report_pace pace, bool has_signs)
{
    return report_pace_is_due(&pace, 500 * NS_PER_MS, has_signs, false);
}

static void test_without_signs(void **state)
{
    assert_false(is_due((struct report_pace){.beats = 3}, false));
    assert_true(is_due((struct report_pace){.beats = 4}, false));
    assert_false(is_due((struct report_pace){.beats = 3, .told_signs = true}, false));
    assert_true(is_due((struct report_pace){.beats = 4, .told_signs = true}, false));
}

static void test_the_first_sign_is_told_at_once(void **state)
{
    assert_true(is_due((struct report_pace){.beats = 0}, true));
    assert_true(is_due((struct report_pace){.told_begin = true}, true));
    assert_false(is_due((struct report_pace){.at = 1, .told_signs = true}, true));
    assert_true(is_due((struct report_pace){.at = 0, .told_signs = true}, true));
}

static void test_the_past_is_told_once(void **state)
{
    const struct report_pace quiet = {.beats = 0}, told = {.told_begin = true},
                             signs = {.told_signs = true};

    assert_true(report_pace_is_due(&quiet, 0, false, true));
    assert_false(report_pace_is_due(&told, 0, false, true));
    assert_false(report_pace_is_due(&signs, 0, false, true));
}

/* Five looks a heartbeat. */
static unsigned count_reports(unsigned beats, bool (*has_signs)(unsigned look),
                              bool (*begins)(unsigned look))
{
    struct report_pace pace = {.beats = 0};
    unsigned reports = 0;

    for (unsigned look = 0; look < 5 * beats; look++) {
        bool signs = has_signs(look), begin = begins(look);
        uint64_t now = look * 100 * NS_PER_MS;

        pace.beats += look % 5 == 0;
        if (!report_pace_is_due(&pace, now, signs, begin))
            continue;
        pace = (struct report_pace){.at = now, .told_signs = signs, .told_begin = begin && !signs};
        reports++;
    }
    return reports;
}

static bool never(unsigned look)
{
    return false;
}

static bool always(unsigned look)
{
    return true;
}

static bool now_and_then(unsigned look)
{
    return look % 2;
}

static bool seldom(unsigned look)
{
    return look % 7 == 0;
}

/* Forty heartbeats are 20 seconds. */
static void test_signs_that_come_and_go(void **state)
{
    assert_int_equal(count_reports(40, never, never), 10);
    assert_int_equal(count_reports(40, always, always), 40);
    assert_in_range(count_reports(40, now_and_then, always), 10, 40);
    assert_in_range(count_reports(40, seldom, now_and_then), 10, 40);
    assert_in_range(count_reports(40, never, now_and_then), 10, 21);
}

static struct server server;

static unsigned looks_asked_for(struct sharing_watch *watch)
{
    uint64_t count = 0;

    early_report_watch(&server, watch);
    return read(server.life->look_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)
               ? (unsigned)count
               : 0;
}

static int start(void **state)
{
    if (server_accounting_init(&server) || server_life_init(&server, NULL))
        return -1;
    server.life->look_fd = eventfd(0, EFD_NONBLOCK);
    return server.life->look_fd < 0;
}

static int stop(void **state)
{
    close(server.life->look_fd);
    server_life_fini(&server);
    server_accounting_fini(&server);
    return 0;
}

static void test_looks_while_clients_share(void **state)
{
    struct sharing_watch watch = {0};

    assert_int_equal(looks_asked_for(&watch), 0);
    counter_add(&server.accounting->shared_ns, 1);
    assert_int_equal(looks_asked_for(&watch), 1);
    watch.look_at = 0;
    assert_int_equal(looks_asked_for(&watch), 0); /* they do not any more */
    counter_add(&server.accounting->shared_ns, 1);
    watch.look_at = clock_ns() + NS_PER_SEC; /* as if the last one were too recent */
    assert_int_equal(looks_asked_for(&watch), 0);
    watch.look_at = 0;
    assert_int_equal(looks_asked_for(&watch), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_kernels),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_without_signs),
        cmocka_unit_test(test_the_first_sign_is_told_at_once),
        cmocka_unit_test(test_the_past_is_told_once),
        cmocka_unit_test(test_signs_that_come_and_go),
        cmocka_unit_test_setup_teardown(test_looks_while_clients_share, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
