/* SPDX-License-Identifier: Apache-2.0 */
/* Who is held back when a session is about to make a call that waits for all streams. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "fake_driver.h"
#include "fence.h"
#include "gate.h"
#include "idle.h"
#include "session_life.h"
#include "suspend.h"

/* A client whose stream has kernels of so long each, one behind the other. */
static struct {
    uint64_t kernel_ns;
    unsigned kernels; /* how many are left */
    uint64_t end;     /* of the one that an event was recorded behind */
} busy;

static CUresult query_stream(CUstream stream)
{
    return busy.kernels ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult record_event(CUevent event, CUstream stream)
{
    busy.end = clock_ns() + busy.kernel_ns;
    return CUDA_SUCCESS;
}

static CUresult query_event(CUevent event)
{
    if (clock_ns() < busy.end)
        return CUDA_ERROR_NOT_READY;
    busy.kernels--;
    return CUDA_SUCCESS;
}

static struct session *caller_of(struct fixture *fixture)
{
    const struct server_client who = {.identity.pid = 4712};

    return session_create(&fixture->server, &who, 2);
}

static struct stream *stream_of(struct fixture *fixture)
{
    struct stream *stream =
        session_lookup(fixture->session, WIRE_STREAM, fixture_handle(WIRE_STREAM, 1));

    return stream ? stream : fixture_stream(fixture, 1, CU_STREAM_NON_BLOCKING);
}

static void start_kernels(struct fixture *fixture, uint64_t kernel_ns, unsigned kernels)
{
    struct session *client = fixture->session;

    busy.kernel_ns = kernel_ns;
    busy.kernels = kernels;
    driver.cuStreamQuery = query_stream;
    driver.cuEventRecord = record_event;
    driver.cuEventQuery = query_event;
    fence_expect_work(stream_of(fixture));
    client->phase = SESSION_SERVING;
    client->at_rest = true;
    list_append(&fixture->server.sessions, &client->link);
}

/* The idle point; whether the client is held in it. */
static bool is_held(void **state, uint64_t kernel_ns, unsigned kernels)
{
    struct fixture *fixture = *state;
    struct session *client = fixture->session, *caller = caller_of(fixture);
    struct exclusive_call call = {0};

    start_kernels(fixture, kernel_ns, kernels);
    idle_await(caller, &fixture->server.devices.device[0], &call);
    bool held = client->suspended.count > 0;
    assert_true(!held || !busy.kernels);
    suspend_end(caller->server, &call);
    assert_int_equal(client->suspended.count, 0);
    list_remove(&client->link);
    session_destroy(caller);
    return held;
}

/* On a busy machine a probe may find the kernel done when it first looks, and once is enough. */
static bool is_held_at_last(void **state, unsigned kernels)
{
    bool held = false;

    for (unsigned attempt = 0; attempt < 100 && !held; attempt++)
        held = is_held(state, 5 * NS_PER_MS, kernels);
    return held;
}

static void work_that_ends_at_once_holds_nobody(void **state)
{
    assert_false(is_held(state, 0, 1));
}

static void a_client_without_work_is_not_held(void **state)
{
    assert_false(is_held(state, 0, 0));
}

/* The next kernel comes behind the first before its client is held. */
static void behind_work_of_some_milliseconds_its_client_is_held(void **state)
{
    assert_true(is_held_at_last(state, 1));
    assert_true((*(struct fixture **)state)->session->suspended.until < UINT64_MAX);
}

static void launches_before_the_hold_are_awaited(void **state)
{
    assert_true(is_held_at_last(state, 2));
}

static void make_such_a_call(struct session *caller, struct session *client, uint64_t until)
{
    const struct device *device = &caller->server->devices.device[0];
    struct exclusive_call call;

    assert_int_equal(exclusive_begin_now(device, "loading", &call), CUDA_SUCCESS);
    suspend_session(&call, client, until);
    exclusive_end(caller, device, &call);
}

/* Once for all calls that come so soon, and for a bounded time. */
static void a_client_is_held_until_the_next_call(void **state)
{
    struct fixture *fixture = *state;
    struct session *client = fixture->session, *caller = caller_of(fixture);
    struct exclusive_call call = {0};

    list_append(&fixture->server.sessions, &client->link);
    for (unsigned i = 0; i < 3; i++) {
        make_such_a_call(caller, client, SUSPENDED_UNTIL_END);
        assert_int_equal(client->suspended.count, 1);
        assert_true(client->suspended.until < UINT64_MAX);
    }
    suspend_session(&call, client, SUSPENDED_UNTIL_END);
    assert_int_equal(client->suspended.until, UINT64_MAX);
    suspend_end(caller->server, &call);
    assert_true(client->suspended.until < UINT64_MAX);
    client->suspended.until = 1;
    assert_false(session_is_suspended(client));
    assert_int_equal(client->suspended.count, 0);
    make_such_a_call(caller, client, UINT64_MAX - 1); /* one with brief work goes on at once */
    assert_int_equal(client->suspended.count, 0);
    list_remove(&client->link);
    session_destroy(caller);
}

static void *attach(void *session)
{
    admission_wait(session);
    return NULL;
}

/* Its first kernel may be long, and a call that waits for all kernels is being made. */
static void a_new_client_begins_after_the_call(void **state)
{
    struct fixture *fixture = *state;
    struct session *client = fixture->session, *caller = caller_of(fixture);
    const struct timespec while_it_looks = {.tv_nsec = 5 * NS_PER_MS};
    struct exclusive_call call;
    pthread_t thread;

    client->phase = SESSION_ATTACHING;
    assert_int_equal(exclusive_begin(caller, &fixture->server.devices.device[0], "loading", &call),
                     CUDA_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, attach, client), 0);
    nanosleep(&while_it_looks, NULL);
    pthread_mutex_lock(&fixture->server.lock);
    assert_int_equal(client->phase, SESSION_ATTACHING);
    pthread_mutex_unlock(&fixture->server.lock);
    exclusive_end(caller, &fixture->server.devices.device[0], &call);
    pthread_join(thread, NULL);
    assert_int_equal(client->phase, SESSION_SERVING);
    session_destroy(caller);
}

static CUresult must_not_record(CUevent event, CUstream stream)
{
    fail_msg("the driver is asked while another client's call has its lock");
    return CUDA_SUCCESS;
}

static void *await_idle_point(void *session)
{
    struct session *caller = session;
    struct exclusive_call call = {0};

    idle_await(caller, &caller->server->devices.device[0], &call);
    suspend_end(caller->server, &call);
    return NULL;
}

/* The driver would answer when that call has ended, and the server's lock is held meanwhile. */
static void during_another_such_call_the_driver_is_not_asked(void **state)
{
    struct fixture *fixture = *state;
    struct gate *gate = fixture->server.devices.device[0].gate;
    struct session *caller = caller_of(fixture);
    const struct timespec while_it_tries = {.tv_nsec = 60 * NS_PER_MS};
    pthread_t thread;

    start_kernels(fixture, 0, 1);
    driver.cuEventRecord = must_not_record;
    assert_true(gate_try_close(gate));
    assert_int_equal(pthread_create(&thread, NULL, await_idle_point, caller), 0);
    nanosleep(&while_it_tries, NULL);
    pthread_mutex_lock(&fixture->server.lock);
    assert_int_equal(fixture->session->suspended.count, 0);
    driver.cuEventRecord = record_event;
    pthread_mutex_unlock(&fixture->server.lock);
    gate_open(gate);
    pthread_join(thread, NULL);
    assert_int_equal(busy.kernels, 0);
    list_remove(&fixture->session->link);
    session_destroy(caller);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_client_is_held_until_the_next_call),
        CASE(a_new_client_begins_after_the_call),
        CASE(work_that_ends_at_once_holds_nobody),
        CASE(a_client_without_work_is_not_held),
        CASE(behind_work_of_some_milliseconds_its_client_is_held),
        CASE(launches_before_the_hold_are_awaited),
        CASE(during_another_such_call_the_driver_is_not_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
