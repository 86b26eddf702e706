/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context local storage answers as NVIDIA's driver was seen to.
 */
#include "fake_driver.h"

#include <pthread.h>

#define TABLE "c693336e1121df11a8c368f355d89593"

typedef void destructor(CUcontext context, void *key, void *value);

static CUresult (*put)(CUcontext context, void *key, void *value, destructor *destroy);
static CUresult (*delete)(CUcontext context, void *key);
static CUresult (*get)(void **ret_value, CUcontext context, void *key);

static int key_a, key_b, value_a, value_b;
static int destroyed;

static int setup(void **state)
{
    void *const *table;

    fake_driver_setup(state);
    table = fake_table(TABLE);
    put = table[0];
    delete = table[1];
    get = table[2];
    assert_null(table[3]);
    fake_current = FAKE_CONTEXT;
    destroyed = 0;
    return 0;
}

static int teardown(void **state)
{
    cudart_context_gone(FAKE_CONTEXT);
    cudart_context_gone(OTHER_CONTEXT);
    return 0;
}

static void assert_value(CUcontext context, void *key, void *expected)
{
    void *value = NULL;

    assert_int_equal(get(&value, context, key), CUDA_SUCCESS);
    assert_ptr_equal(value, expected);
}

static void assert_missing(CUcontext context, void *key)
{
    void *value = &value;

    assert_int_equal(get(&value, context, key), CUDA_ERROR_INVALID_HANDLE);
    assert_ptr_equal(value, &value);
}

static void test_put_get_delete(void **state)
{
    assert_missing(NULL, &key_a);
    assert_int_equal(put(NULL, &key_a, &value_a, NULL), CUDA_SUCCESS);
    assert_value(NULL, &key_a, &value_a);
    assert_value(FAKE_CONTEXT, &key_a, &value_a);
    assert_missing(NULL, &key_b);
    assert_missing(OTHER_CONTEXT, &key_a);
    assert_int_equal(delete (NULL, &key_a), CUDA_SUCCESS);
    assert_int_equal(delete (NULL, &key_a), CUDA_ERROR_INVALID_HANDLE);
    assert_missing(NULL, &key_a);
}

static void test_the_old_value_stays(void **state)
{
    assert_int_equal(put(NULL, &key_a, &value_a, NULL), CUDA_SUCCESS);
    assert_int_equal(put(NULL, &key_a, &value_b, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_value(NULL, &key_a, &value_a);
}

static void test_contexts_that_cannot_be_used(void **state)
{
    void *value;

    fake_state = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(get(&value, NULL, &key_a), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(get(&value, FAKE_CONTEXT, &key_a), CUDA_ERROR_INVALID_HANDLE);
    fake_current = NULL;
    assert_int_equal(get(&value, NULL, &key_a), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(put(NULL, &key_a, &value_a, NULL), CUDA_ERROR_INVALID_CONTEXT);
    fake_state = CUDA_ERROR_DEINITIALIZED;
    assert_int_equal(delete (FAKE_CONTEXT, &key_a), CUDA_ERROR_DEINITIALIZED);
    fake_state = CUDA_ERROR_NOT_INITIALIZED;
    assert_int_equal(get(&value, FAKE_CONTEXT, &key_a), CUDA_ERROR_NOT_INITIALIZED);
}

static void destroy(CUcontext context, void *key, void *value)
{
    void *unused;

    assert_ptr_equal(context, FAKE_CONTEXT);
    assert_ptr_equal(value, key == &key_a ? &value_a : &value_b);
    /* No lock is held, so the destructor may call back in. */
    assert_int_equal(get(&unused, OTHER_CONTEXT, &key_a), CUDA_SUCCESS);
    destroyed++;
}

static void test_destructors_run_when_the_context_goes(void **state)
{
    assert_int_equal(put(NULL, &key_a, &value_a, destroy), CUDA_SUCCESS);
    assert_int_equal(put(NULL, &key_b, &value_b, destroy), CUDA_SUCCESS);
    assert_int_equal(put(OTHER_CONTEXT, &key_a, &value_a, NULL), CUDA_SUCCESS);
    assert_value(NULL, &key_a, &value_a);

    cudart_context_gone(FAKE_CONTEXT);
    assert_int_equal(destroyed, 2);
    assert_missing(NULL, &key_a);
    assert_missing(NULL, &key_b);
    assert_value(OTHER_CONTEXT, &key_a, &value_a);
    cudart_context_gone(FAKE_CONTEXT);
    assert_int_equal(destroyed, 2);
}

static void test_delete_runs_no_destructor(void **state)
{
    assert_int_equal(put(NULL, &key_a, &value_a, destroy), CUDA_SUCCESS);
    assert_int_equal(delete (NULL, &key_a), CUDA_SUCCESS);
    cudart_context_gone(FAKE_CONTEXT);
    assert_int_equal(destroyed, 0);
}

static void *delete_and_put(void *unused)
{
    assert_int_equal(delete (FAKE_CONTEXT, &key_a), CUDA_SUCCESS);
    assert_int_equal(put(FAKE_CONTEXT, &key_a, &value_b, NULL), CUDA_SUCCESS);
    return NULL;
}

/* What a thread remembers of its last look-up is no longer good when another one changes it. */
static void test_threads_see_each_others_changes(void **state)
{
    pthread_t thread;

    assert_int_equal(put(NULL, &key_a, &value_a, NULL), CUDA_SUCCESS);
    assert_value(NULL, &key_a, &value_a);
    assert_int_equal(pthread_create(&thread, NULL, delete_and_put, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_value(NULL, &key_a, &value_b);
}

static void test_many_keys(void **state)
{
    static int keys[1000];

    for (int i = 0; i < 1000; i++)
        assert_int_equal(put(NULL, &keys[i], &keys[999 - i], NULL), CUDA_SUCCESS);
    for (int i = 0; i < 1000; i += 2)
        assert_int_equal(delete (NULL, &keys[i]), CUDA_SUCCESS);
    for (int i = 0; i < 1000; i += 2) {
        assert_missing(NULL, &keys[i]);
        assert_value(NULL, &keys[i + 1], &keys[998 - i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_get_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_old_value_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contexts_that_cannot_be_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destructors_run_when_the_context_goes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_delete_runs_no_destructor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads_see_each_others_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
