/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads are inside the library, and that it can be closed. */
#include "client_call.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "recovery_hook.h"
#include "unit.h"

#define CLOSE_TIMEOUT_NS (2 * NS_PER_SEC)

static struct {
    uint32_t inside, parked, go_on; /* atomic */
    uint32_t passed;                /* atomic: calls that were made meanwhile */
} stage;

static void wait_for(uint32_t *word)
{
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* A client whose server is well. */
static int setup(void **state)
{
    client = calloc(1, sizeof(*client));
    client->channel.region = calloc(1, sizeof(*client->channel.region));
    memset(&stage, 0, sizeof(stage));
    *state = client;
    return 0;
}

static int teardown(void **state)
{
    free(client->channel.region);
    free(client);
    client = NULL;
    return 0;
}

static void *stay_inside(void *parks)
{
    call_begin();
    if (parks)
        call_park();
    set(&stage.inside, 1);
    wait_for(&stage.go_on);
    if (parks)
        call_unpark();
    call_end();
    call_place_give();
    return NULL;
}

static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    return thread;
}

static void end(pthread_t thread)
{
    set(&stage.go_on, 1);
    pthread_join(thread, NULL);
}

/* Closes from inside, as the thread does that moves the client. */
static bool close_from_inside(void)
{
    bool closed;

    call_begin();
    call_park();
    closed = call_close(CLOSE_TIMEOUT_NS);
    call_unpark();
    return closed;
}

static void leave(void)
{
    call_open();
    call_end();
}

static void test_closes_when_no_other_thread_is_inside(void **state)
{
    assert_true(close_from_inside());
    leave();
    assert_true(close_from_inside());
    leave();
}

static void test_parked_thread_does_not_prevent_closing(void **state)
{
    pthread_t thread = start(stay_inside, &stage);

    wait_for(&stage.inside);
    assert_true(close_from_inside());
    leave();
    end(thread);
}

static void test_thread_inside_prevents_closing(void **state)
{
    pthread_t thread = start(stay_inside, NULL);

    wait_for(&stage.inside);
    assert_false(close_from_inside());
    assert_int_equal(call_closed, 0);
    call_end();
    end(thread);
    assert_true(close_from_inside());
    leave();
}

static void *come_and_go(void *unused)
{
    while (!__atomic_load_n(&stage.go_on, __ATOMIC_ACQUIRE)) {
        call_begin();
        __atomic_add_fetch(&stage.passed, 1, __ATOMIC_RELAXED);
        call_end();
    }
    call_place_give();
    return NULL;
}

static void test_calls_inside_calls(void **state)
{
    call_begin();
    assert_true(call_is_outermost());
    call_begin();
    assert_false(call_is_outermost());
    call_end();
    assert_true(call_is_outermost());
    call_end();
}

/* Threads leave before the library is closed, or come in when it is open again. */
static void test_no_thread_comes_in_while_it_is_closed(void **state)
{
    pthread_t threads[3];

    for (unsigned i = 0; i < 3; i++)
        threads[i] = start(come_and_go, NULL);
    for (unsigned round = 0; round < 20; round++) {
        wait_for(&stage.passed);
        call_begin();
        call_park();
        assert_true(call_close(CLOSE_TIMEOUT_NS));
        uint32_t before = __atomic_load_n(&stage.passed, __ATOMIC_RELAXED);
        usleep(2000);
        assert_int_equal(__atomic_load_n(&stage.passed, __ATOMIC_RELAXED), before);
        call_unpark();
        call_open();
        call_end();
    }
    set(&stage.go_on, 1);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void *run_function(void *unused)
{
    call_begin_for_function();
    set(&stage.inside, 1);
    call_end();
    call_place_give();
    return NULL;
}

static void test_functions_run_while_they_are_awaited(void **state)
{
    assert_true(close_from_inside());
    pthread_t thread = start(run_function, NULL);
    call_await_functions(true);
    wait_for(&stage.inside);
    call_await_functions(false);
    leave();
    pthread_join(thread, NULL);
}

static unsigned moves;

static void count_move(void)
{
    moves++;
}

static void test_functions_begin_no_move(void **state)
{
    recovery_leave_hook = count_move;
    moves = 0;
    assert_true(channel_leave_change(&client->channel, LEAVE_NONE, LEAVE_WANTED));
    call_begin_for_function();
    call_end();
    assert_int_equal(moves, 0);
    call_begin();
    call_end();
    assert_int_equal(moves, 1);
    recovery_leave_hook = NULL;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_lock(void *unused)
{
    call_begin();
    set(&stage.inside, 1);
    call_mutex_hold(&held);
    pthread_mutex_unlock(&held);
    call_end();
    call_place_give();
    return NULL;
}

/* The owner of a lock that others wait for moves the client. */
static void test_blocked_threads_are_at_rest_when_the_server_has_ended(void **state)
{
    pthread_mutex_lock(&held);
    pthread_t thread = start(wait_for_lock, NULL);
    wait_for(&stage.inside);
    call_begin();
    call_park();
    client->channel.gone = 1;
    while (!call_close(CLOSE_TIMEOUT_NS)) /* until the thread waits */
        ;
    client->channel.gone = 0;
    call_unpark();
    pthread_mutex_unlock(&held);
    leave();
    pthread_join(thread, NULL);
}

/* They go on as soon as they have the lock. */
static void test_blocked_threads_prevent_closing_otherwise(void **state)
{
    pthread_mutex_lock(&held);
    pthread_t thread = start(wait_for_lock, NULL);
    wait_for(&stage.inside);
    call_begin();
    call_park();
    assert_false(call_close(NS_PER_MS));
    pthread_mutex_unlock(&held);
    while (!call_close(CLOSE_TIMEOUT_NS)) /* until the thread has left */
        ;
    call_unpark();
    leave();
    pthread_join(thread, NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_closes_when_no_other_thread_is_inside),
        CASE(test_parked_thread_does_not_prevent_closing),
        CASE(test_thread_inside_prevents_closing),
        CASE(test_calls_inside_calls),
        CASE(test_no_thread_comes_in_while_it_is_closed),
        CASE(test_functions_run_while_they_are_awaited),
        CASE(test_functions_begin_no_move),
        CASE(test_blocked_threads_are_at_rest_when_the_server_has_ended),
        CASE(test_blocked_threads_prevent_closing_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
