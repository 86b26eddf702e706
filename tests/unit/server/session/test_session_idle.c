/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for an idle client: when they end, and how the thread counts meanwhile. */
#include "session_idle.h"

#include <time.h>

#include "fake_driver.h"
#include "suspend.h"

/* How often the stream says that it has work, and what the pauses after that show. */
static struct {
    struct session *session;
    unsigned busy_queries, queries, pauses, rests, asked;
} scene;

static CUresult query_stream(CUstream stream)
{
    (void)stream;
    return scene.queries++ < scene.busy_queries ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* Takes the place of the C library's, so that the pauses of a test take no time. */
int nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
    (void)time;
    (void)ret_rest;
    scene.pauses++;
    scene.rests += session_is_at_rest(scene.session);
    return 0;
}

static bool is_wanted_twice(const struct session *session)
{
    (void)session;
    return scene.asked++ < 2;
}

static bool is_stopped_meanwhile(const struct session *session)
{
    (void)session;
    scene.session->stop = true;
    return true;
}

static int setup(void **state)
{
    if (fixture_setup(state))
        return -1;
    struct fixture *fixture = *state;
    driver.cuStreamQuery = query_stream;
    fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
    scene = (typeof(scene)){.session = fixture->session, .busy_queries = 5};
    return 0;
}

static bool await_idle(struct idle_wait wait)
{
    return session_await_idle(scene.session, &wait);
}

static void idle_client_costs_one_poll(void **state)
{
    (void)state;
    scene.busy_queries = 0;
    assert_true(await_idle((struct idle_wait){.deadline = 1}));
    assert_int_equal(scene.queries, 1);
    assert_int_equal(scene.pauses, 0);
}

static void waits_for_the_work(void **state)
{
    (void)state;
    assert_true(await_idle((struct idle_wait){.deadline = 0}));
    assert_int_equal(scene.queries, 6);
    assert_int_equal(scene.pauses, 5);
}

static void ends_at_the_deadline(void **state)
{
    (void)state;
    assert_false(await_idle((struct idle_wait){.deadline = 1}));
    assert_int_equal(scene.queries, 1);
}

static void ends_when_it_is_not_wanted(void **state)
{
    (void)state;
    assert_false(await_idle((struct idle_wait){.is_wanted = is_wanted_twice}));
    assert_int_equal(scene.queries, 3);
}

static void ends_with_the_session(void **state)
{
    (void)state;
    assert_false(await_idle((struct idle_wait){.is_wanted = is_stopped_meanwhile}));
    assert_int_equal(scene.queries, 2);
}

/* An exclusive call would take a thread at rest for one that adds no work. */
static void rests_where_the_caller_says_so(void **state)
{
    (void)state;
    assert_true(await_idle((struct idle_wait){.rests = true}));
    assert_int_equal(scene.rests, 5);
    assert_false(session_is_at_rest(scene.session));
    scene.queries = scene.rests = 0;
    assert_true(await_idle((struct idle_wait){.rests = false}));
    assert_int_equal(scene.rests, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(idle_client_costs_one_poll), CASE(waits_for_the_work),
        CASE(ends_at_the_deadline),       CASE(ends_when_it_is_not_wanted),
        CASE(ends_with_the_session),      CASE(rests_where_the_caller_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
