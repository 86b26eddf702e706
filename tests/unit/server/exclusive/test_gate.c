/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for all streams do not begin while a stream waits for a value. */
#include <pthread.h>
#include <unistd.h>

#include "clock.h"
#include "fake_driver.h"
#include "gate.h"

static bool passed; /* atomic: what every event answers */
static bool closed;
static struct gate *gate;

#define OWNER 7u /* the client whose streams wait */

static CUresult CUDAAPI query(CUevent event)
{
    assert_non_null(event);
    return __atomic_load_n(&passed, __ATOMIC_ACQUIRE) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void set(bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static bool get(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static int setup(void **state)
{
    int error = fixture_setup(state);

    gate = ((struct fixture *)*state)->server.devices.gate;
    driver.cuEventQuery = query;
    set(&passed, false);
    set(&closed, false);
    return error;
}

static void begin_a_wait(void **state)
{
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);

    assert_true(gate_enter(stream->device->gate, &stream->session->stop));
    gate_wait_record(gate_wait_expect(stream->device, stream->driver, OWNER), stream->driver);
    gate_leave(stream->device->gate);
}

static void *close_once(void *context)
{
    (void)context;
    if (gate_close(gate, "a call") != CUDA_SUCCESS)
        return NULL;
    set(&closed, true);
    gate_open(gate);
    return NULL;
}

static void no_stream_waits(void **state)
{
    (void)state;
    close_once(NULL);
    assert_true(get(&closed));
}

static void a_call_waits_for_the_wait(void **state)
{
    pthread_t thread;

    begin_a_wait(state);
    assert_int_equal(pthread_create(&thread, NULL, close_once, NULL), 0);
    usleep(20000);
    assert_false(get(&closed));
    set(&passed, true);
    pthread_join(thread, NULL);
    assert_true(get(&closed));
}

static void a_try_fails_while_a_stream_waits(void **state)
{
    begin_a_wait(state);
    assert_false(gate_try_close(gate));
    set(&passed, true);
    assert_true(gate_try_close(gate));
    assert_false(gate_try_close(gate));
    gate_open(gate);
}

/* It takes all of its members or none. */
static void a_group_is_all_of_its_locks(void **state)
{
    struct gate *other = gate_create();
    struct gate *group = gate_create_group((struct gate *[]){other, gate}, 2);

    assert_int_equal(gate_close(group, "a call"), CUDA_SUCCESS);
    assert_false(gate_try_close(other));
    assert_false(gate_try_enter(gate));
    gate_open(group);
    begin_a_wait(state);
    assert_false(gate_try_close(group));
    assert_true(gate_try_close(other));
    gate_open(other);
    assert_true(gate_try_enter(gate));
    gate_leave(gate);
    set(&passed, true);
    assert_true(gate_try_close(group));
    gate_open(group);
    gate_destroy(group);
    gate_destroy(other);
}

static void *begin_and_tell(void *state)
{
    begin_a_wait(state);
    set(&closed, true);
    return NULL;
}

static void a_wait_waits_for_the_call(void **state)
{
    pthread_t thread;

    assert_int_equal(gate_close(gate, "a call"), CUDA_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, begin_and_tell, state), 0);
    usleep(20000);
    assert_false(get(&closed));
    gate_open(gate);
    pthread_join(thread, NULL);
    assert_true(get(&closed));
    set(&passed, true);
    close_once(NULL);
}

static uint64_t held_back_since; /* atomic: 0 = not */
static uint64_t held_back_ns;    /* for which a wait must be held back until the one before ends */
static bool begun, enough;       /* atomic */

/* A wait lasts until the next one has begun, or could not begin for a while. */
static CUresult CUDAAPI query_overlapping(CUevent event)
{
    (void)event;
    uint64_t since = __atomic_load_n(&held_back_since, __ATOMIC_ACQUIRE);
    return since && clock_ns() > since + held_back_ns ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void *begin_one_after_another(void *argument)
{
    const struct stream *stream = argument;

    while (!get(&enough)) {
        __atomic_store_n(&held_back_since, clock_ns(), __ATOMIC_RELEASE);
        assert_true(gate_enter(stream->device->gate, &stream->session->stop));
        __atomic_store_n(&held_back_since, 0, __ATOMIC_RELEASE);
        gate_wait_record(gate_wait_expect(stream->device, stream->driver, OWNER), stream->driver);
        gate_leave(stream->device->gate);
        set(&begun, true);
        usleep(100);
    }
    __atomic_store_n(&held_back_since, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void call_among_waits_that_overlap(void **state, uint64_t overlap_ns)
{
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);
    pthread_t thread;

    driver.cuEventQuery = query_overlapping;
    held_back_ns = overlap_ns;
    set(&begun, false);
    set(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, begin_one_after_another, stream), 0);
    while (!get(&begun))
        usleep(100);
    close_once(NULL);
    set(&enough, true);
    pthread_join(thread, NULL);
    assert_true(get(&closed));
    close_once(NULL);
}

static void a_call_gets_its_turn_among_waits_that_overlap(void **state)
{
    call_among_waits_that_overlap(state, 5 * NS_PER_MS);
}

/* They overlap by more than a turn. Without tickets the call would be refused. */
static void no_wait_begins_before_a_call_that_has_waited_for_the_limit(void **state)
{
    server_quotas_init("wait-seconds=1");
    call_among_waits_that_overlap(state, 200 * NS_PER_MS);
}

static void *begin_until_stopped(void *argument)
{
    const struct stream *stream = argument;

    while (gate_enter(stream->device->gate, &stream->session->stop)) {
        gate_leave(stream->device->gate);
        usleep(1000);
    }
    set(&passed, true);
    return NULL;
}

/* The client that is ended may be the one whose earlier wait keeps the call away. */
static void a_wait_that_may_not_begin_ends_with_its_client(void **state)
{
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);
    pthread_t call, wait;

    server_quotas_init("wait-seconds=1");
    begin_a_wait(state);
    assert_int_equal(pthread_create(&call, NULL, close_once, NULL), 0);
    assert_int_equal(pthread_create(&wait, NULL, begin_until_stopped, stream), 0);
    sleep(2); /* the call has its ticket by then */
    stream->session->stop = true;
    pthread_join(wait, NULL);
    pthread_join(call, NULL);
    assert_true(get(&closed));
}

static unsigned ended; /* atomic: how often */

static bool end_client(void *context, uint32_t client)
{
    assert_int_equal(client, OWNER);
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
    if (context)
        set(&passed, true);
    return context;
}

/* What an event before a wait answers, which is every other one. */
static CUresult CUDAAPI query_unreached(CUevent event)
{
    (void)event;
    return get(&passed) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult CUDAAPI query_reached(CUevent event)
{
    static CUevent first;

    first = first ? first : event;
    return get(&passed) || event == first ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void a_client_that_waits_too_long_is_ended(void **state)
{
    server_quotas_init("wait-seconds=1");
    driver.cuEventQuery = query_reached;
    assert_int_equal(driver.cuEventQuery((CUevent)(uintptr_t)1), CUDA_SUCCESS);
    gate_set_overdue(gate, end_client, gate);
    begin_a_wait(state);
    ended = 0;
    close_once(NULL);
    assert_int_equal(ended, 1);
    assert_true(get(&closed));
}

static void a_call_that_waits_for_its_own_client_is_refused(void **state)
{
    server_quotas_init("wait-seconds=1");
    driver.cuEventQuery = query_reached;
    gate_set_overdue(gate, end_client, NULL);
    begin_a_wait(state);
    ended = 0;
    close_once(NULL);
    assert_int_equal(ended, 1);
    assert_false(get(&closed));
    set(&passed, true);
}

/* Work before the wait takes its time: no client is to blame for that. */
static void a_wait_that_is_not_reached_ends_nobody(void **state)
{
    server_quotas_init("wait-seconds=1");
    driver.cuEventQuery = query_unreached;
    gate_set_overdue(gate, end_client, gate);
    begin_a_wait(state);
    ended = 0;
    close_once(NULL);
    assert_int_equal(ended, 0);
    assert_false(get(&closed));
    set(&passed, true);
}

#define IN_A_ROW 10u
#define EACH_NS (800 * NS_PER_MS)

static CUevent recorded[2 * IN_A_ROW]; /* before and behind each wait of a stream */
static unsigned record_count;
static uint64_t first_reached;

static CUresult CUDAAPI record_in_a_row(CUevent event, CUstream stream)
{
    (void)stream;
    recorded[record_count++] = event;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI query_in_a_row(CUevent event)
{
    uint64_t at = first_reached;

    for (unsigned i = 0; recorded[i] != event; i++)
        at += i % 2 ? 0 : EACH_NS; /* from before a wait to behind it */
    return get(&passed) || clock_ns() >= at ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static void a_client_with_many_short_waits_in_a_row_is_ended(void **state)
{
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);

    server_quotas_init("wait-seconds=1");
    gate_set_overdue(gate, end_client, gate);
    driver.cuEventRecord = record_in_a_row;
    record_count = 0;
    for (unsigned i = 0; i < IN_A_ROW; i++)
        gate_wait_record(gate_wait_expect(stream->device, stream->driver, OWNER), stream->driver);
    first_reached = clock_ns();
    driver.cuEventQuery = query_in_a_row;
    ended = 0;
    close_once(NULL);
    assert_int_equal(ended, 1);
    assert_true(get(&closed));
}

static void events_are_reused(void **state)
{
    begin_a_wait(state);
    set(&passed, true);
    close_once(NULL);
    unsigned made = fake.events;
    begin_a_wait(state);
    assert_int_equal(fake.events, made);
    close_once(NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(no_stream_waits),
        CASE(a_call_waits_for_the_wait),
        CASE(a_try_fails_while_a_stream_waits),
        CASE(a_group_is_all_of_its_locks),
        CASE(a_wait_waits_for_the_call),
        CASE(a_call_gets_its_turn_among_waits_that_overlap),
        CASE(no_wait_begins_before_a_call_that_has_waited_for_the_limit),
        CASE(a_wait_that_may_not_begin_ends_with_its_client),
        CASE(a_client_that_waits_too_long_is_ended),
        CASE(a_client_with_many_short_waits_in_a_row_is_ended),
        CASE(a_call_that_waits_for_its_own_client_is_refused),
        CASE(a_wait_that_is_not_reached_ends_nobody),
        CASE(events_are_reused),
    };

    return cmocka_run_group_tests_name("stall", tests, NULL, NULL);
}
