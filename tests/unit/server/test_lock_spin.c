/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's own pthread_mutex_lock: a mutex of each kind does what libc's does.
 */
#include <errno.h>
#include <pthread.h>

#include "unit.h"

#define THREADS 4
#define ROUNDS 20000

static pthread_mutex_t mutex_of(int kind)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return mutex;
}

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *count_up(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&contended);
        count++;
        pthread_mutex_unlock(&contended);
    }
    return context;
}

static void only_one_thread_holds_it(void **state)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count, THREADS * ROUNDS);
}

static void a_recursive_mutex_is_locked_again(void **state)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_RECURSIVE);

    assert_int_equal(pthread_mutex_lock(&mutex), 0);
    assert_int_equal(pthread_mutex_lock(&mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
}

static void an_error_checking_mutex_finds_errors(void **state)
{
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_ERRORCHECK);

    assert_int_equal(pthread_mutex_lock(&mutex), 0);
    assert_int_equal(pthread_mutex_lock(&mutex), EDEADLK);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_thread_holds_it),
        cmocka_unit_test(a_recursive_mutex_is_locked_again),
        cmocka_unit_test(an_error_checking_mutex_finds_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
