/* SPDX-License-Identifier: Apache-2.0 */
/* What a client holds is counted against the table of quotas that is in force. */
#include "quota.h"

#include <errno.h>

#include "fake_driver.h"

static void a_server_without_a_daemon_reads_its_environment(void **state)
{
    (void)state;
    assert_int_equal(server_quotas_init("host-memory=64M,waits=7"), 0);
    assert_true(quota(QUOTA_HOST_MEMORY) == 64u << 20);
    assert_int_equal(server_quotas_init("waits=x"), -EINVAL);
    assert_int_equal(quota(QUOTA_WAITS), 7);
}

static void held_objects_count(void **state)
{
    struct fixture *fixture = *state;
    struct session *session = fixture->session;

    server_quotas_init("waits=3");
    assert_true(quota_take(session, QUOTA_WAITS, 2));
    assert_false(quota_take(session, QUOTA_WAITS, 2));
    assert_int_equal(session->quotas.refused, 1);
    assert_string_equal(session->reason, "waits for values that go on: it has 2, wants 2 more, and "
                                         "the quota waits is 3");
    assert_false(quota_take(session, QUOTA_WAITS, UINT64_MAX));
    assert_true(quota_take(session, QUOTA_WAITS, 1));
    quota_give(session, QUOTA_WAITS, 3);
    assert_int_equal(quota_held(session, QUOTA_WAITS), 0);
}

static void clients_keep_what_they_hold(void **state)
{
    struct fixture *fixture = *state;
    struct quotas fewer;

    server_quotas_init(NULL);
    quotas_init(&fewer);
    fewer.value[QUOTA_STREAMS] = 4;
    for (uint32_t i = 0; i < 5; i++)
        assert_true(quota_take(fixture->session, QUOTA_STREAMS, 1));
    server_quotas_set(&fewer);
    assert_false(quota_take(fixture->session, QUOTA_STREAMS, 1));
    quota_give(fixture->session, QUOTA_STREAMS, 2);
    assert_true(quota_take(fixture->session, QUOTA_STREAMS, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_without_a_daemon_reads_its_environment),
        cmocka_unit_test_setup_teardown(held_objects_count, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(clients_keep_what_they_hold, fixture_setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
