/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between honest ends: every size at every offset, across the wrap of the cursors. */
#include "ring.h"

#include <errno.h>
#include <pthread.h>

#include "ring_fixture.h"

static _Alignas(16) unsigned char buffer[FIXTURE_RING];

static void put(struct ring_fixture *fixture, uint32_t size, uint32_t number)
{
    struct ring_message *message = ring_reserve(&fixture->producer, size);
    assert_non_null(message);
    fill_message(message, size, number);
    ring_commit(&fixture->producer, size);
}

static void take(struct ring_fixture *fixture, uint32_t size, uint32_t number)
{
    assert_int_equal(ring_next(&fixture->consumer, buffer, sizeof(buffer)), (int)size);
    assert_true(is_message((struct ring_message *)buffer, size, number));
    ring_release(&fixture->consumer);
}

static void test_every_size_at_every_offset_across_the_wrap(void **state)
{
    struct ring_fixture fixture;
    for (uint32_t offset = 0; offset < FIXTURE_RING; offset += RING_ALIGNMENT) {
        ring_fixture_init(&fixture, 0u - FIXTURE_RING + offset);
        for (uint32_t size = 16; size <= FIXTURE_RING / 2; size += RING_ALIGNMENT) {
            put(&fixture, size, size);
            take(&fixture, size, size);
        }
        assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 0);
        ring_fixture_fini(&fixture);
    }
}

static void test_format_starts_before_the_wrap(void **state)
{
    struct ring_shared shared;
    ring_format(&shared);
    assert_int_equal(shared.tail, shared.head);
    assert_true(shared.tail > UINT32_MAX - (1u << 20));
    assert_int_equal(shared.tail % RING_ALIGNMENT, 0);
}

static void test_full_ring_at_every_offset(void **state)
{
    struct ring_fixture fixture;
    for (uint32_t offset = 0; offset < FIXTURE_RING; offset += RING_ALIGNMENT) {
        ring_fixture_init(&fixture, 0u - FIXTURE_RING / 2 + offset);
        put(&fixture, FIXTURE_RING / 2, 1);
        put(&fixture, FIXTURE_RING / 2 - 16, 2);
        put(&fixture, 16, 3);
        assert_null(ring_reserve(&fixture.producer, 16));
        take(&fixture, FIXTURE_RING / 2, 1);
        put(&fixture, FIXTURE_RING / 2, 4);
        assert_null(ring_reserve(&fixture.producer, 16));
        take(&fixture, FIXTURE_RING / 2 - 16, 2);
        take(&fixture, 16, 3);
        take(&fixture, FIXTURE_RING / 2, 4);
        assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 0);
        ring_fixture_fini(&fixture);
    }
}

static bool always(void *context)
{
    return true;
}

static void test_no_message_is_longer_than_half_the_ring(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    assert_null(ring_reserve(&fixture.producer, FIXTURE_RING / 2 + 16));
    assert_false(ring_wait_space(&fixture.producer, FIXTURE_RING / 2 + 16, always, NULL));
    ring_fixture_fini(&fixture);
}

static void test_nothing_is_seen_before_the_commit(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    struct ring_message *message = ring_reserve(&fixture.producer, 64);
    fill_message(message, 64, 1);
    assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 0);
    assert_ptr_equal(ring_reserve(&fixture.producer, 32), message);
    ring_commit(&fixture.producer, 64);
    take(&fixture, 64, 1);
    ring_fixture_fini(&fixture);
}

static void test_several_messages_in_one_commit(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0u - 32);
    unsigned char *place = ring_reserve(&fixture.producer, 96);
    fill_message((struct ring_message *)place, 32, 1);
    fill_message((struct ring_message *)(place + 32), 64, 2);
    ring_commit(&fixture.producer, 96);
    take(&fixture, 32, 1);
    take(&fixture, 64, 2);
    ring_fixture_fini(&fixture);
}

static void test_a_kick_before_the_wait_is_kept(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    ring_kick(&fixture.consumer);
    ring_wait_message(&fixture.consumer, 0);
    assert_int_equal(fixture.consumer.kicked, 0);
    ring_wait_message(&fixture.consumer, 1000);
    ring_fixture_fini(&fixture);
}

static void *kick(void *argument)
{
    ring_kick(argument);
    return NULL;
}

static void test_a_kick_wakes_a_sleeper(void **state)
{
    struct ring_fixture fixture;
    pthread_t thread;
    ring_fixture_init(&fixture, 0);
    pthread_create(&thread, NULL, kick, &fixture.consumer);
    ring_wait_message(&fixture.consumer, 0);
    pthread_join(thread, NULL);
    ring_fixture_fini(&fixture);
}

static bool alive_twice(void *context)
{
    int *asked = context;
    return ++*asked <= 2;
}

static void test_waiting_for_space_ends_with_the_consumer(void **state)
{
    struct ring_fixture fixture;
    int asked = 0;
    ring_fixture_init(&fixture, 0);
    put(&fixture, FIXTURE_RING / 2, 1);
    put(&fixture, FIXTURE_RING / 2, 2);
    assert_false(ring_wait_space(&fixture.producer, 16, alive_twice, &asked));
    assert_int_equal(asked, 3);
    ring_fixture_fini(&fixture);
}

static void test_sizes_that_cannot_be_mapped(void **state)
{
    int fd;
    void *data;
    assert_int_equal(shm_create("ring", 3 * FIXTURE_PAGE, &fd), 0);
    assert_int_equal(ring_map(fd, 0, 3 * FIXTURE_PAGE, &data), -EINVAL);
    assert_int_equal(ring_map(fd, 0, 16, &data), -EINVAL);
    assert_int_equal(ring_map(fd, 0, 0, &data), -EINVAL);
    assert_int_equal(ring_map(fd, 0, 1u << 31, &data), -EINVAL);
    assert_int_equal(ring_map(-1, 0, FIXTURE_PAGE, &data), -EBADF);
    assert_int_equal(ring_map(fd, 1, FIXTURE_PAGE, &data), -EINVAL);
    close(fd);
}

/* What a consumer has seen it may have read, whether it has said so or not. */
static void test_messages_unread_by_a_dead_consumer(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0u - FIXTURE_RING / 4);
    assert_int_equal(ring_unread(&fixture.producer), 0);
    put(&fixture, 48, 1);
    assert_int_equal(ring_unread(&fixture.producer), 48);
    put(&fixture, 16, 2);
    take(&fixture, 48, 1);
    assert_int_equal(ring_unread(&fixture.producer), 0);
    put(&fixture, 32, 3);
    assert_int_equal(ring_unread(&fixture.producer), 32);
    take(&fixture, 16, 2);
    assert_int_equal(ring_unread(&fixture.producer), 32);
    assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 32);
    assert_int_equal(ring_unread(&fixture.producer), 0);
    fixture.producer.shared->seen = fixture.producer.cursor + 16;
    assert_int_equal(ring_unread(&fixture.producer), 0);
    ring_fixture_fini(&fixture);
}

/* One that has read less than it has seen can say so, and goes on from there. */
static void test_messages_that_a_consumer_leaves_unread(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0u - FIXTURE_RING / 4);
    put(&fixture, 48, 1);
    put(&fixture, 16, 2);
    take(&fixture, 48, 1);
    assert_int_equal(ring_unread(&fixture.producer), 0);
    ring_make_exact(&fixture.consumer);
    assert_int_equal(ring_unread(&fixture.producer), 16);
    put(&fixture, 32, 3);
    assert_int_equal(ring_unread(&fixture.producer), 48);
    take(&fixture, 16, 2);
    take(&fixture, 32, 3);
    ring_make_exact(&fixture.consumer);
    assert_int_equal(ring_unread(&fixture.producer), 0);
    ring_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_at_every_offset_across_the_wrap),
        cmocka_unit_test(test_format_starts_before_the_wrap),
        cmocka_unit_test(test_full_ring_at_every_offset),
        cmocka_unit_test(test_no_message_is_longer_than_half_the_ring),
        cmocka_unit_test(test_nothing_is_seen_before_the_commit),
        cmocka_unit_test(test_several_messages_in_one_commit),
        cmocka_unit_test(test_a_kick_before_the_wait_is_kept),
        cmocka_unit_test(test_a_kick_wakes_a_sleeper),
        cmocka_unit_test(test_waiting_for_space_ends_with_the_consumer),
        cmocka_unit_test(test_sizes_that_cannot_be_mapped),
        cmocka_unit_test(test_messages_unread_by_a_dead_consumer),
        cmocka_unit_test(test_messages_that_a_consumer_leaves_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
