/* SPDX-License-Identifier: Apache-2.0 */
/* When a client had better load its code in another lane. */
#include "fake_driver.h"
#include "fence.h"
#include "gate.h"
#include "long_work_watch.h"
#include "stream.h"

#define ROUNDS 4 /* of the watchdog, after which long work is seen */

static CUresult answer; /* what streams and events say */
static struct stream *stream;

static CUresult CUDAAPI query_stream(CUstream queried)
{
    assert_non_null(queried);
    return answer;
}

static CUresult CUDAAPI query_event(CUevent event)
{
    assert_non_null(event);
    return answer;
}

static struct session *session_of(void **state)
{
    return ((struct fixture *)*state)->session;
}

static bool is_told_to_ask(void **state)
{
    return session_of(state)->channel->region->move_wanted != 0;
}

/* The client has a stream with work. */
static int setup(void **state)
{
    int error = fixture_setup(state);
    struct session *session = session_of(state);

    session->server->asks_for_lanes = true;
    session->phase = SESSION_SERVING;
    list_append(&session->server->sessions, &session->link);
    stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);
    fence_expect_work(stream);
    driver.cuStreamQuery = query_stream;
    driver.cuEventQuery = query_event;
    answer = CUDA_ERROR_NOT_READY;
    return error;
}

static int teardown(void **state)
{
    list_remove(&session_of(state)->link);
    return fixture_teardown(state);
}

static void watch(void **state)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        long_work_watch(session_of(state)->server);
}

static void a_new_client_is_told_to_ask(void **state)
{
    long_work_greet(session_of(state), true);
    assert_true(is_told_to_ask(state));
    watch(state);
    assert_true(is_told_to_ask(state));
}

static void nobody_is_told_where_there_is_no_spare_lane(void **state)
{
    session_of(state)->server->asks_for_lanes = false;
    long_work_greet(session_of(state), true);
    watch(state);
    assert_false(is_told_to_ask(state));
    assert_false(long_work_is_seen(session_of(state)->server));
}

static void nobody_is_told_in_another_lane_than_the_main_one(void **state)
{
    long_work_greet(session_of(state), false);
    assert_false(is_told_to_ask(state));
    watch(state);
    assert_false(is_told_to_ask(state));
    assert_true(long_work_is_seen(session_of(state)->server));
}

static void own_long_work_is_reported_and_not_avoided(void **state)
{
    long_work_greet(session_of(state), true);
    assert_true(long_work_is_in_the_way(session_of(state)));
    watch(state);
    assert_true(long_work_is_seen(session_of(state)->server));
    assert_false(is_told_to_ask(state));
}

static void long_work_is_news_once(void **state)
{
    const struct server *server = session_of(state)->server;

    for (unsigned i = 0; i < 2; i++) {
        answer = CUDA_ERROR_NOT_READY;
        watch(state);
        assert_true(long_work_is_news(server));
        assert_true(long_work_tell(server));
        assert_false(long_work_is_news(server));
        answer = CUDA_SUCCESS;
        watch(state);
        assert_false(long_work_is_news(server));
        assert_false(long_work_tell(server));
        fence_expect_work(stream);
    }
}

static void work_that_is_done_is_not_in_the_way(void **state)
{
    answer = CUDA_SUCCESS;
    assert_false(long_work_is_in_the_way(session_of(state)));
    watch(state);
    assert_false(long_work_is_seen(session_of(state)->server));
}

static void a_call_that_waits_for_all_streams_is_in_the_way(void **state)
{
    struct gate *gate = session_of(state)->server->devices.device[0].gate;

    answer = CUDA_SUCCESS;
    assert_int_equal(gate_close(gate, "a call"), CUDA_SUCCESS);
    assert_true(long_work_is_in_the_way(session_of(state)));
    gate_open(gate);
    assert_false(long_work_is_in_the_way(session_of(state)));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_new_client_is_told_to_ask),
        CASE(nobody_is_told_where_there_is_no_spare_lane),
        CASE(nobody_is_told_in_another_lane_than_the_main_one),
        CASE(own_long_work_is_reported_and_not_avoided),
        CASE(long_work_is_news_once),
        CASE(work_that_is_done_is_not_in_the_way),
        CASE(a_call_that_waits_for_all_streams_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
