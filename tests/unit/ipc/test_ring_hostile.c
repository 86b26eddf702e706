/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's consumer against a producer that writes what it likes. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "futex.h"
#include "ring_fixture.h"

#define CAPACITY 256u
#define CANARY 0xa5

/* The private buffer, with a border behind it that must stay as it is. */
static _Alignas(16) unsigned char buffer[CAPACITY + 64];

static int next(struct ring_fixture *fixture)
{
    memset(buffer + CAPACITY, CANARY, 64);
    int size = ring_next(&fixture->consumer, buffer, CAPACITY);
    for (int i = 0; i < 64; i++)
        assert_int_equal(buffer[CAPACITY + i], CANARY);
    return size;
}

/* All messages are well-formed, so that the tail alone is what can be refused. */
static void assert_tail_refused(uint32_t head, uint32_t tail)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, head);
    for (uint32_t at = 0; at < FIXTURE_RING; at += RING_ALIGNMENT)
        *(uint32_t *)((char *)fixture.data + at) = RING_ALIGNMENT;
    fixture.shared->tail = tail;
    assert_int_equal(next(&fixture), -EPROTO);
    assert_int_equal(next(&fixture), -EPROTO);
    assert_int_equal(fixture.shared->head, head);
    ring_fixture_fini(&fixture);
}

static void test_tails_that_jump(void **state)
{
    const uint32_t heads[] = {0, 16, FIXTURE_RING, 0u - 16, 0u - FIXTURE_RING};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        uint32_t head = heads[i];
        assert_tail_refused(head, head + 1);
        assert_tail_refused(head, head + 8);
        assert_tail_refused(head, head + 17);
        assert_tail_refused(head, head + FIXTURE_RING + 16);
        assert_tail_refused(head, head + (1u << 31));
        assert_tail_refused(head, head - 16);
        assert_tail_refused(head, head - 1);
    }
}

static void assert_size_refused(uint32_t available, uint32_t size)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0u - 16);
    struct ring_message *message = ring_reserve(&fixture.producer, available);
    message->size = size;
    ring_commit(&fixture.producer, available);
    assert_int_equal(next(&fixture), -EPROTO);
    ring_fixture_fini(&fixture);
}

static void test_messages_that_lie_about_their_size(void **state)
{
    assert_size_refused(64, 0);
    assert_size_refused(64, 8);
    assert_size_refused(64, 15);
    assert_size_refused(64, 17);
    assert_size_refused(64, 80);
    assert_size_refused(64, UINT32_MAX);
    assert_size_refused(64, UINT32_MAX - 15);
    assert_size_refused(64, 1u << 31);
    assert_size_refused(512, CAPACITY + 16);
}

/* One change of everything: the size that comes next, some other word, and the shared words. */
static void scribble(struct ring_fixture *fixture, uint64_t *random)
{
    uint32_t *words = fixture->data;
    uint32_t cursor = fixture->consumer.cursor;
    words[cursor % FIXTURE_RING / 4] = unit_random(random) % 40 * 8;
    words[unit_random(random) % (FIXTURE_RING / 4)] = unit_random(random);
    fixture->shared->tail = cursor + unit_random(random) % 600 * 8;
    fixture->shared->head = unit_random(random);
    fixture->shared->sleeping = unit_random(random);
    fixture->shared->want_space = unit_random(random) % 2;
}

static void test_random_garbage_everywhere(void **state)
{
    struct ring_fixture fixture;
    uint64_t random = 3;
    int accepted = 0, refused = 0;
    ring_fixture_init(&fixture, 0u - 8192);
    for (int round = 0; round < 100000; round++) {
        scribble(&fixture, &random);
        int size = next(&fixture);
        assert_true(size == -EPROTO || (size >= 0 && size <= (int)CAPACITY && size % 16 == 0));
        if (size > 0) {
            assert_int_equal(((struct ring_message *)buffer)->size, size);
            ring_release(&fixture.consumer);
            accepted++;
        }
        refused += size < 0;
    }
    assert_true(accepted > 1000 && refused > 1000); /* else the garbage tested nothing */
    ring_fixture_fini(&fixture);
}

/* Runs `hostile` in a process of its own until the test is over. */
static pid_t start(struct ring_fixture *fixture, void (*hostile)(struct ring_fixture *))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            hostile(fixture);
    return child;
}

static void stop(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Changes the size between every two instructions of the consumer, as far as timing allows. */
static void change_size(struct ring_fixture *fixture)
{
    uint32_t *size = fixture->data;
    __atomic_store_n(size, 32, __ATOMIC_RELAXED);
    __atomic_store_n(size, CAPACITY, __ATOMIC_RELAXED);
    __atomic_store_n(size, UINT32_MAX - 15, __ATOMIC_RELAXED);
}

static void test_size_that_changes_under_the_copy(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    fixture.shared->tail = 1024;
    pid_t child = start(&fixture, change_size);
    for (int round = 0; round < 300000; round++) {
        int size = next(&fixture);
        assert_true(size == -EPROTO || size == 32 || size == (int)CAPACITY);
        if (size > 0)
            assert_int_equal(((struct ring_message *)buffer)->size, size);
    }
    stop(child);
    ring_fixture_fini(&fixture);
}

static void flood(struct ring_fixture *fixture)
{
    atomic_store_explicit(&fixture->shared->sleeping, 0, memory_order_relaxed);
    futex_wake(&fixture->shared->sleeping, 1);
    atomic_store_explicit(&fixture->shared->sleeping, 1, memory_order_relaxed);
}

static void test_doorbell_flood(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    pid_t child = start(&fixture, flood);
    for (int round = 0; round < 2000; round++) {
        ring_wait_message(&fixture.consumer, 1000000);
        assert_int_equal(next(&fixture), 0);
    }
    stop(child);
    ring_fixture_fini(&fixture);
}

static void hold_asleep(struct ring_fixture *fixture)
{
    atomic_store_explicit(&fixture->shared->sleeping, 1, memory_order_relaxed);
}

/* It may delay the kick, by a bounded time; that it comes at all is what is tested. */
static void test_a_kick_arrives_although_the_peer_holds_the_doorbell(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    pid_t child = start(&fixture, hold_asleep);
    ring_kick(&fixture.consumer);
    ring_wait_message(&fixture.consumer, 0);
    assert_int_equal(fixture.consumer.kicked, 0);
    stop(child);
    ring_fixture_fini(&fixture);
}

static void test_producer_survives_a_head_that_makes_no_sense(void **state)
{
    struct ring_fixture fixture;
    ring_fixture_init(&fixture, 0);
    assert_non_null(ring_reserve(&fixture.producer, 2048));
    ring_commit(&fixture.producer, 2048);
    ring_commit(&fixture.producer, 2048);
    fixture.shared->head = 123456;
    assert_null(ring_reserve(&fixture.producer, 16));
    ring_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tails_that_jump),
        cmocka_unit_test(test_messages_that_lie_about_their_size),
        cmocka_unit_test(test_random_garbage_everywhere),
        cmocka_unit_test(test_size_that_changes_under_the_copy),
        cmocka_unit_test(test_doorbell_flood),
        cmocka_unit_test(test_a_kick_arrives_although_the_peer_holds_the_doorbell),
        cmocka_unit_test(test_producer_survives_a_head_that_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
