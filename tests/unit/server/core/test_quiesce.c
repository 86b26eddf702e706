/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for all streams do not begin while a stream waits for a value. */
#include <pthread.h>
#include <unistd.h>

#include "clock.h"
#include "fake_driver.h"
#include "quiesce.h"

static bool passed; /* atomic: what every event answers */
static bool quiesced;
static struct quiesce *quiesce;

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

    quiesce = ((struct fixture *)*state)->server.devices.quiesce;
    driver.cuEventQuery = query;
    set(&passed, false);
    set(&quiesced, false);
    return error;
}

static void begin_a_wait(void **state)
{
    struct stream *stream = fixture_stream(*state, 1, CU_STREAM_NON_BLOCKING);

    assert_true(quiesce_wait_begin(stream->device->quiesce, &stream->session->stop));
    quiesce_wait_record(quiesce_wait_expect(stream->device, stream->driver, OWNER), stream->driver);
    quiesce_wait_end(stream->device->quiesce);
}

static void *quiesce_once(void *context)
{
    (void)context;
    if (quiesce_begin(quiesce, "a call") != CUDA_SUCCESS)
        return NULL;
    set(&quiesced, true);
    quiesce_end(quiesce);
    return NULL;
}

static void no_stream_waits(void **state)
{
    (void)state;
    quiesce_once(NULL);
    assert_true(get(&quiesced));
}

static void a_call_waits_for_the_wait(void **state)
{
    pthread_t thread;

    begin_a_wait(state);
    assert_int_equal(pthread_create(&thread, NULL, quiesce_once, NULL), 0);
    usleep(20000);
    assert_false(get(&quiesced));
    set(&passed, true);
    pthread_join(thread, NULL);
    assert_true(get(&quiesced));
}

static void a_try_fails_while_a_stream_waits(void **state)
{
    begin_a_wait(state);
    assert_false(quiesce_try(quiesce));
    set(&passed, true);
    assert_true(quiesce_try(quiesce));
    assert_false(quiesce_try(quiesce));
    quiesce_end(quiesce);
}

/* It takes all of its members or none. */
static void a_group_is_all_of_its_locks(void **state)
{
    struct quiesce *other = quiesce_create();
    struct quiesce *group = quiesce_create_group((struct quiesce *[]){other, quiesce}, 2);

    assert_int_equal(quiesce_begin(group, "a call"), CUDA_SUCCESS);
    assert_false(quiesce_try(other));
    assert_false(quiesce_wait_try(quiesce));
    quiesce_end(group);
    begin_a_wait(state);
    assert_false(quiesce_try(group));
    assert_true(quiesce_try(other));
    quiesce_end(other);
    assert_true(quiesce_wait_try(quiesce));
    quiesce_wait_end(quiesce);
    set(&passed, true);
    assert_true(quiesce_try(group));
    quiesce_end(group);
    quiesce_destroy(group);
    quiesce_destroy(other);
}

static void *begin_and_tell(void *state)
{
    begin_a_wait(state);
    set(&quiesced, true);
    return NULL;
}

static void a_wait_waits_for_the_call(void **state)
{
    pthread_t thread;

    assert_int_equal(quiesce_begin(quiesce, "a call"), CUDA_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, begin_and_tell, state), 0);
    usleep(20000);
    assert_false(get(&quiesced));
    quiesce_end(quiesce);
    pthread_join(thread, NULL);
    assert_true(get(&quiesced));
    set(&passed, true);
    quiesce_once(NULL);
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
        assert_true(quiesce_wait_begin(stream->device->quiesce, &stream->session->stop));
        __atomic_store_n(&held_back_since, 0, __ATOMIC_RELEASE);
        quiesce_wait_record(quiesce_wait_expect(stream->device, stream->driver, OWNER),
                            stream->driver);
        quiesce_wait_end(stream->device->quiesce);
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
    quiesce_once(NULL);
    set(&enough, true);
    pthread_join(thread, NULL);
    assert_true(get(&quiesced));
    quiesce_once(NULL);
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

    while (quiesce_wait_begin(stream->device->quiesce, &stream->session->stop)) {
        quiesce_wait_end(stream->device->quiesce);
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
    assert_int_equal(pthread_create(&call, NULL, quiesce_once, NULL), 0);
    assert_int_equal(pthread_create(&wait, NULL, begin_until_stopped, stream), 0);
    sleep(2); /* the call has its ticket by then */
    stream->session->stop = true;
    pthread_join(wait, NULL);
    pthread_join(call, NULL);
    assert_true(get(&quiesced));
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
    quiesce_set_overdue(quiesce, end_client, quiesce);
    begin_a_wait(state);
    ended = 0;
    quiesce_once(NULL);
    assert_int_equal(ended, 1);
    assert_true(get(&quiesced));
}

static void a_call_that_waits_for_its_own_client_is_refused(void **state)
{
    server_quotas_init("wait-seconds=1");
    driver.cuEventQuery = query_reached;
    quiesce_set_overdue(quiesce, end_client, NULL);
    begin_a_wait(state);
    ended = 0;
    quiesce_once(NULL);
    assert_int_equal(ended, 1);
    assert_false(get(&quiesced));
    set(&passed, true);
}

/* Work before the wait takes its time: nobody is to blame for that. */
static void a_wait_that_is_not_reached_ends_nobody(void **state)
{
    server_quotas_init("wait-seconds=1");
    driver.cuEventQuery = query_unreached;
    quiesce_set_overdue(quiesce, end_client, quiesce);
    begin_a_wait(state);
    ended = 0;
    quiesce_once(NULL);
    assert_int_equal(ended, 0);
    assert_false(get(&quiesced));
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
    quiesce_set_overdue(quiesce, end_client, quiesce);
    driver.cuEventRecord = record_in_a_row;
    record_count = 0;
    for (unsigned i = 0; i < IN_A_ROW; i++)
        quiesce_wait_record(quiesce_wait_expect(stream->device, stream->driver, OWNER),
                            stream->driver);
    first_reached = clock_ns();
    driver.cuEventQuery = query_in_a_row;
    ended = 0;
    quiesce_once(NULL);
    assert_int_equal(ended, 1);
    assert_true(get(&quiesced));
}

static void events_are_reused(void **state)
{
    begin_a_wait(state);
    set(&passed, true);
    quiesce_once(NULL);
    unsigned made = fake.events;
    begin_a_wait(state);
    assert_int_equal(fake.events, made);
    quiesce_once(NULL);
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
