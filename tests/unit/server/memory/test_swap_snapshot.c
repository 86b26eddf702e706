/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that has found no memory waits for the snapshots of its device. It hears whether one has
 * ended since the last time.
 */
#include "swap_snapshot.h"

#include <pthread.h>
#include <sched.h>

#include "fake_driver.h"
#include "memory_state.h"
#include "suspend.h"

static bool await_snapshots(const struct fixture *fixture)
{
    return swap_snapshots_await(fixture->session, &fixture->server.devices.device[0]);
}

static struct snapshot_count *snapshots(const struct fixture *fixture)
{
    return &fixture->server.memory->snapshots[0];
}

static void nothing_has_ended(void **state)
{
    assert_false(await_snapshots(*state));
}

static void an_end_counts_once(void **state)
{
    struct fixture *fixture = *state;

    snapshots(fixture)->made = snapshots(fixture)->ended = 1;
    assert_true(await_snapshots(fixture));
    assert_false(await_snapshots(fixture));
    snapshots(fixture)->made = snapshots(fixture)->ended = 2;
    assert_true(await_snapshots(fixture));
}

/* As the thread of a checkpoint, once an exclusive call would see that the client rests. */
static void *end_one(void *context)
{
    const struct fixture *fixture = context;

    while (!session_is_at_rest(fixture->session))
        sched_yield();
    snapshots(fixture)->ended++;
    return NULL;
}

static void a_wait_is_at_rest(void **state)
{
    struct fixture *fixture = *state;
    pthread_t thread;

    session_set_at_rest(fixture->session, false);
    snapshots(fixture)->made = 1;
    assert_int_equal(pthread_create(&thread, NULL, end_one, fixture), 0);
    assert_true(await_snapshots(fixture));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(snapshots(fixture)->ended, 1);
    assert_false(session_is_at_rest(fixture->session));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_has_ended, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(an_end_counts_once, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_wait_is_at_rest, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
