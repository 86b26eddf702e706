/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: what is refused, what is reused, and readers beside writers. */
#include "handles.h"

#include <errno.h>
#include <pthread.h>

#include "unit.h"

enum { STREAM = 1, EVENT = 2 };

static void test_add_get_remove(void **state)
{
    struct handles handles;
    int object;
    assert_int_equal(handles_init(&handles, 100), 0);
    uint64_t handle = handles_add(&handles, STREAM, &object);
    assert_true(handle > 2);
    assert_int_equal(handle_type(handle), STREAM);
    assert_ptr_equal(handles_get(&handles, STREAM, handle), &object);
    assert_int_equal(handles_count(&handles), 1);
    assert_ptr_equal(handles_remove(&handles, STREAM, handle), &object);
    assert_null(handles_get(&handles, STREAM, handle));
    assert_null(handles_remove(&handles, STREAM, handle));
    assert_int_equal(handles_count(&handles), 0);
    handles_fini(&handles);
}

static void test_limits_of_init(void **state)
{
    struct handles handles;
    assert_int_equal(handles_init(&handles, 0), -EINVAL);
    assert_int_equal(handles_init(&handles, HANDLE_INDEX_MAX + 2), -EINVAL);
    assert_int_equal(handles_init(&handles, HANDLE_INDEX_MAX + 1), 0);
    handles_fini(&handles);
    handles_fini(&handles);
}

static void test_every_flipped_bit_is_found_out(void **state)
{
    struct handles handles;
    int object;
    assert_int_equal(handles_init(&handles, 5000), 0);
    uint64_t handle = handles_add(&handles, STREAM, &object);
    for (int bit = 0; bit < 64; bit++) {
        assert_null(handles_get(&handles, STREAM, handle ^ 1ull << bit));
        assert_null(handles_remove(&handles, STREAM, handle ^ 1ull << bit));
    }
    assert_null(handles_get(&handles, EVENT, handle));
    assert_null(handles_get(&handles, 0, 0));
    assert_null(handles_get(&handles, STREAM, 0));
    assert_ptr_equal(handles_get(&handles, STREAM, handle), &object);
    handles_fini(&handles);
}

static void test_oldest_index_comes_back_with_a_new_generation(void **state)
{
    struct handles handles;
    uint64_t first[3], second[3];
    int object;
    assert_int_equal(handles_init(&handles, 3), 0);
    for (int i = 0; i < 3; i++)
        first[i] = handles_add(&handles, EVENT, &object);
    assert_int_equal(handles_add(&handles, EVENT, &object), 0);
    for (int i = 2; i >= 0; i--)
        handles_remove(&handles, EVENT, first[i]);
    for (int i = 0; i < 3; i++) {
        second[i] = handles_add(&handles, EVENT, &object);
        assert_int_equal(handle_index(second[i]), handle_index(first[2 - i]));
        assert_int_not_equal(handle_generation(second[i]), handle_generation(first[2 - i]));
        assert_null(handles_get(&handles, EVENT, first[2 - i]));
    }
    assert_int_equal(handles_add(&handles, EVENT, &object), 0);
    handles_fini(&handles);
}

static void test_a_freed_index_rests_while_there_are_fresh_ones(void **state)
{
    struct handles handles;
    int object;
    assert_int_equal(handles_init(&handles, HANDLE_INDEX_MAX + 1), 0);
    for (uint32_t i = 0; i < 3 * HANDLES_REST; i++) {
        uint64_t handle = handles_add(&handles, EVENT, &object);
        assert_int_equal(handle_index(handle), i % (HANDLES_REST + 1));
        handles_remove(&handles, EVENT, handle);
    }
    handles_fini(&handles);
}

static void test_refused_additions(void **state)
{
    struct handles handles;
    int object;
    assert_int_equal(handles_init(&handles, 3), 0);
    assert_int_equal(handles_add(&handles, 0, &object), 0);
    assert_int_equal(handles_add(&handles, HANDLE_TYPE_MAX + 1, &object), 0);
    assert_int_equal(handles_add(&handles, STREAM, NULL), 0);
    assert_int_equal(handles_count(&handles), 0);
    handles_fini(&handles);
}

static uint64_t compose(uint64_t type, uint64_t generation, uint64_t index)
{
    return type << 48 | generation << 24 | index;
}

static void test_put_of_handles_minted_elsewhere(void **state)
{
    struct handles handles;
    int object;
    uint64_t handle = compose(STREAM, 7, 2500);
    assert_int_equal(handles_init(&handles, 3000), 0);
    assert_int_equal(handles_put(&handles, handle, &object), 0);
    assert_ptr_equal(handles_get(&handles, STREAM, handle), &object);
    assert_int_equal(handles_put(&handles, handle, &object), -EEXIST);
    assert_int_equal(handles_put(&handles, compose(EVENT, 8, 2500), &object), -EEXIST);
    assert_ptr_equal(handles_remove(&handles, STREAM, handle), &object);
    assert_int_equal(handles_put(&handles, compose(EVENT, 8, 2500), &object), 0);
    assert_int_equal(handles_put(&handles, compose(EVENT, 1, 2999), &object), 0);
    assert_int_equal(handles_count(&handles), 2);
    handles_fini(&handles);
}

static void test_put_refuses_what_is_no_handle(void **state)
{
    struct handles handles;
    int object;
    assert_int_equal(handles_init(&handles, 10), 0);
    assert_int_equal(handles_put(&handles, 0, &object), -EINVAL);
    assert_int_equal(handles_put(&handles, compose(0, 1, 1), &object), -EINVAL);
    assert_int_equal(handles_put(&handles, compose(STREAM, 0, 1), &object), -EINVAL);
    assert_int_equal(handles_put(&handles, compose(256, 1, 1), &object), -EINVAL);
    assert_int_equal(handles_put(&handles, UINT64_MAX, &object), -EINVAL);
    assert_int_equal(handles_put(&handles, compose(STREAM, 1, 10), &object), -ENOSPC);
    assert_int_equal(handles_put(&handles, compose(STREAM, 1, HANDLE_INDEX_MAX), &object), -ENOSPC);
    handles_fini(&handles);
}

struct removal {
    struct handles *handles;
    int visits;
};

static void remove_visited(void *context, uint64_t handle, void *object)
{
    struct removal *removal = context;
    removal->visits++;
    assert_ptr_equal(handles_remove(removal->handles, handle_type(handle), handle), object);
}

static void test_for_each_may_remove(void **state)
{
    struct handles handles;
    static int objects[3000];
    assert_int_equal(handles_init(&handles, 10000), 0);
    for (int i = 0; i < 3000; i++)
        assert_int_not_equal(handles_add(&handles, 1 + i % 5, &objects[i]), 0);
    assert_int_equal(handles_put(&handles, compose(EVENT, 1, 9000), &objects[0]), 0);
    struct removal removal = {.handles = &handles};
    handles_for_each(&handles, remove_visited, &removal);
    assert_int_equal(removal.visits, 3001);
    assert_int_equal(handles_count(&handles), 0);
    handles_fini(&handles);
}

/* ---- threads: writers mint and remove, each leaving its newest handle where readers see it ----
 */

#define WRITERS 2
#define READERS 2
#define ROUNDS 200000

static struct handles shared_handles;
static uint64_t newest[WRITERS];
static int writers_left;

/* An object knows its writer, so a reader sees when it got a wrong one. */
static struct {
    int writer;
} shared_objects[WRITERS];

/* Threads return NULL when all was well. */
static void *write_handles(void *argument)
{
    int writer = (int)(intptr_t)argument;
    void *object = &shared_objects[writer];
    bool wrong = false;
    for (int round = 0; round < ROUNDS && !wrong; round++) {
        uint64_t handle = handles_add(&shared_handles, 1 + writer, object);
        __atomic_store_n(&newest[writer], handle, __ATOMIC_RELEASE);
        wrong = handles_get(&shared_handles, 1 + writer, handle) != object ||
                handles_remove(&shared_handles, 1 + writer, handle) != object;
    }
    __atomic_fetch_sub(&writers_left, 1, __ATOMIC_ACQ_REL);
    return wrong ? object : NULL;
}

static void *read_handles(void *argument)
{
    bool wrong = false;
    while (__atomic_load_n(&writers_left, __ATOMIC_ACQUIRE) > 0 && !wrong) {
        for (int writer = 0; writer < WRITERS; writer++) {
            uint64_t handle = __atomic_load_n(&newest[writer], __ATOMIC_ACQUIRE);
            void *object = handles_get(&shared_handles, 1 + writer, handle);
            wrong |= object && object != &shared_objects[writer];
        }
    }
    return wrong ? newest : NULL;
}

static void test_readers_beside_writers(void **state)
{
    pthread_t writers[WRITERS], readers[READERS];
    void *wrong;
    assert_int_equal(handles_init(&shared_handles, WRITERS), 0);
    writers_left = WRITERS;
    for (intptr_t i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_handles, NULL);
    for (intptr_t i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, write_handles, (void *)i);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], &wrong);
        assert_null(wrong);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(writers_left, 0);
    assert_int_equal(handles_count(&shared_handles), 0);
    handles_fini(&shared_handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_get_remove),
        cmocka_unit_test(test_limits_of_init),
        cmocka_unit_test(test_every_flipped_bit_is_found_out),
        cmocka_unit_test(test_oldest_index_comes_back_with_a_new_generation),
        cmocka_unit_test(test_a_freed_index_rests_while_there_are_fresh_ones),
        cmocka_unit_test(test_refused_additions),
        cmocka_unit_test(test_put_of_handles_minted_elsewhere),
        cmocka_unit_test(test_put_refuses_what_is_no_handle),
        cmocka_unit_test(test_for_each_may_remove),
        cmocka_unit_test(test_readers_beside_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
