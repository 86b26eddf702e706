/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes that clean up behind themselves. Freed memory is the sanitizers' to check. */
#include "cleanup.h"

#include <string.h>

#include "unit.h"

static char *make_text(bool keep)
{
    _cleanup_free_ char *text = strdup("kept");
    return keep ? steal_pointer(text) : NULL;
}

static void test_stolen_pointer_survives(void **state)
{
    char *text = make_text(true);
    assert_string_equal(text, "kept");
    free(text);
    assert_null(make_text(false));
}

static void test_stealing_leaves_null(void **state)
{
    int object;
    int *pointer = &object;
    assert_ptr_equal(steal_pointer(pointer), &object);
    assert_null(pointer);
}

static int under_lock(pthread_mutex_t *mutex)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(mutex);
    return pthread_mutex_trylock(mutex);
}

static void test_lock_ends_with_the_scope(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    assert_int_not_equal(under_lock(&mutex), 0);
    assert_int_equal(pthread_mutex_trylock(&mutex), 0);
    pthread_mutex_unlock(&mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stolen_pointer_survives),
        cmocka_unit_test(test_stealing_leaves_null),
        cmocka_unit_test(test_lock_ends_with_the_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
