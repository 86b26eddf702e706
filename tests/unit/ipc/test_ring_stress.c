/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between two processes: random sizes with contents verified, and a producer that is
 * killed at any moment. A wake-up that was lost would make these take seconds instead of failing;
 * the test runner's time limit is what notices. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "ring_fixture.h"

#define MESSAGES 200000u
#define PING_PONGS 3000u

static _Alignas(16) unsigned char buffer[FIXTURE_RING];

static bool parent_lives(void *context)
{
    return getppid() == *(pid_t *)context;
}

static bool always(void *context)
{
    return true;
}

/* Mostly short, sometimes as long as it gets. Both ends work it out on their own. */
static uint32_t size_of(uint64_t *random)
{
    uint32_t most = unit_random(random) % 16 == 0 ? FIXTURE_RING / 2 : 256;
    return 16 + unit_random(random) % (most / 16) * 16;
}

static void send(struct ring *ring, uint32_t size, uint32_t number, pid_t parent)
{
    if (!ring_wait_space(ring, size, parent_lives, &parent))
        _exit(1);
    fill_message(ring_reserve(ring, size), size, number);
    ring_commit(ring, size);
}

static _Noreturn void produce(struct ring *ring, uint32_t count, pid_t parent)
{
    uint64_t random = 4;
    for (uint32_t number = 0; number < count; number++)
        send(ring, size_of(&random), number, parent);
    _exit(0);
}

static pid_t start_producer(struct ring_fixture *fixture, uint32_t count)
{
    pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child == 0)
        produce(&fixture->producer, count, parent);
    return child;
}

/* Takes one message if there is one, and checks it. */
static bool take(struct ring_fixture *fixture, uint64_t *random, uint32_t number)
{
    int got = ring_next(&fixture->consumer, buffer, sizeof(buffer));
    assert_true(got >= 0);
    if (got == 0)
        return false;
    uint32_t size = size_of(random);
    assert_int_equal(got, size);
    assert_true(is_message((struct ring_message *)buffer, size, number));
    ring_release(&fixture->consumer);
    return true;
}

static void test_two_processes(void **state)
{
    struct ring_fixture fixture;
    uint64_t random = 4;
    uint32_t number = 0;
    int status;
    ring_fixture_init(&fixture, 0u - 1024);
    pid_t child = start_producer(&fixture, MESSAGES);
    while (number < MESSAGES) {
        if (take(&fixture, &random, number))
            number++;
        else
            ring_wait_message(&fixture.consumer, 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(take(&fixture, &random, number));
    ring_fixture_fini(&fixture);
}

static _Noreturn void echo(struct ring *in, struct ring *out)
{
    for (uint32_t number = 0; number < PING_PONGS; number++) {
        int size;
        while ((size = ring_next(in, buffer, sizeof(buffer))) == 0)
            ring_wait_message(in, 0);
        ring_release(in);
        memcpy(ring_reserve(out, (uint32_t)size), buffer, (size_t)size);
        ring_commit(out, (uint32_t)size);
    }
    _exit(0);
}

/* One message at a time, so each end sleeps for the other again and again. */
static void test_ping_pong(void **state)
{
    struct ring_fixture there, back;
    ring_fixture_init(&there, 0);
    ring_fixture_init(&back, 0);
    pid_t child = fork();
    if (child == 0)
        echo(&there.consumer, &back.producer);
    for (uint32_t number = 0; number < PING_PONGS; number++) {
        assert_true(ring_wait_space(&there.producer, 48, always, NULL));
        fill_message(ring_reserve(&there.producer, 48), 48, number);
        ring_commit(&there.producer, 48);
        while (ring_next(&back.consumer, buffer, sizeof(buffer)) == 0)
            ring_wait_message(&back.consumer, 0);
        assert_true(is_message((struct ring_message *)buffer, 48, number));
        ring_release(&back.consumer);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    ring_fixture_fini(&there);
    ring_fixture_fini(&back);
}

static void test_producer_killed_in_the_middle_of_a_message(void **state)
{
    struct ring_fixture fixture;
    int status;
    ring_fixture_init(&fixture, 0u - 64);
    pid_t child = fork();
    if (child == 0) {
        fill_message(ring_reserve(&fixture.producer, 96), 96, 7);
        ring_commit(&fixture.producer, 96);
        fill_message(ring_reserve(&fixture.producer, 512), 512, 8);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 96);
    assert_true(is_message((struct ring_message *)buffer, 96, 7));
    ring_release(&fixture.consumer);
    assert_int_equal(ring_next(&fixture.consumer, buffer, sizeof(buffer)), 0);
    ring_fixture_fini(&fixture);
}

static void kill_after(uint32_t messages)
{
    struct ring_fixture fixture;
    uint64_t random = 4;
    uint32_t number = 0;
    ring_fixture_init(&fixture, 0u - 1024);
    pid_t child = start_producer(&fixture, UINT32_MAX);
    while (number < messages)
        number += take(&fixture, &random, number);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (take(&fixture, &random, number))
        number++;
    ring_fixture_fini(&fixture);
}

static void test_producer_killed_at_any_moment(void **state)
{
    for (uint32_t round = 0; round < 100; round++)
        kill_after(1 + round * 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_producer_killed_in_the_middle_of_a_message),
        cmocka_unit_test(test_producer_killed_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
