/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end against a client that writes what it likes into the region. */
#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "channel_fixture.h"
#include "channel_server.h"

static void test_slots_that_do_not_exist(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    assert_int_equal(channel_server_reply(fixture.server, -1, CUDA_SUCCESS, NULL, 0), -EPROTO);
    assert_int_equal(channel_server_reply(fixture.server, REPLY_SLOTS, CUDA_SUCCESS, NULL, 0),
                     -EPROTO);
    int slot = channel_kind_slot(UINT32_MAX);
    assert_int_equal(channel_server_reply(fixture.server, slot, CUDA_SUCCESS, NULL, 0), -EPROTO);
    channel_fixture_fini(&fixture);
}

static void test_size_of_an_answer(void **state)
{
    static unsigned char data[REPLY_DATA_MAX + 1];
    struct channel_fixture fixture;
    const void *answer;
    uint32_t size;
    memset(data, 0x5a, sizeof(data));
    channel_fixture_init(&fixture);
    int slot = channel_reply_begin(&fixture.client);
    assert_int_equal(
        channel_server_reply(fixture.server, slot, CUDA_SUCCESS, data, REPLY_DATA_MAX + 1),
        -EMSGSIZE);
    assert_int_equal(channel_server_reply(fixture.server, slot, CUDA_SUCCESS, data, REPLY_DATA_MAX),
                     0);
    assert_int_equal(channel_reply_wait(&fixture.client, slot, &answer, &size), CUDA_SUCCESS);
    assert_int_equal(size, REPLY_DATA_MAX);
    assert_memory_equal(answer, data, REPLY_DATA_MAX);
    assert_int_equal(fixture.server->region->slots[slot + 1].state, REPLY_FREE);
    channel_fixture_fini(&fixture);
}

static void test_an_unasked_answer_harms_nobody(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    for (uint32_t lie = 0; lie < 6; lie++) {
        fixture.client.region->slots[3].state = lie;
        assert_int_equal(channel_server_reply(fixture.server, 3, CUDA_SUCCESS, "x", 1), 0);
    }
    channel_fixture_fini(&fixture);
}

static void test_a_region_full_of_garbage(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    memset(fixture.client.region, 0xff, sizeof(struct region));
    memset(fixture.client.ring_data, 0xff, REGION_RING_BYTES);
    assert_int_equal(channel_server_next(fixture.server, &message), -EPROTO);
    channel_server_wait(fixture.server, 1000);
    assert_int_equal(channel_server_reply(fixture.server, 31, CUDA_SUCCESS, "x", 1), 0);
    channel_server_fail(fixture.server, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    channel_server_defer(fixture.server, CUDA_ERROR_INVALID_VALUE);
    channel_fixture_fini(&fixture);
}

static void test_a_command_longer_than_allowed(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    struct ring *ring = &fixture.client.ring;
    struct ring_message *forged = ring_reserve(ring, CHANNEL_MESSAGE_MAX + 16);
    forged->size = CHANNEL_MESSAGE_MAX + 16;
    ring_commit(ring, CHANNEL_MESSAGE_MAX + 16);
    assert_int_equal(channel_server_next(fixture.server, &message), -EPROTO);
    channel_fixture_fini(&fixture);
}

static void test_a_command_that_changes_after_it_was_taken(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    assert_true(channel_fixture_send(&fixture.client, 5, 16, 1234));
    assert_int_equal(channel_server_next(fixture.server, &message), 16);
    memset(fixture.client.ring_data, 0xff, REGION_RING_BYTES);
    assert_int_equal(message->size, 16);
    assert_int_equal(message->kind, 5);
    assert_int_equal(*(const uint32_t *)(message + 1), 1234);
    channel_fixture_fini(&fixture);
}

static void test_a_kick_ends_the_wait(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    channel_server_kick(fixture.server);
    channel_server_wait(fixture.server, 0);
    channel_fixture_fini(&fixture);
}

static void test_the_descriptor_is_handed_over_once(void **state)
{
    struct channel_server *server;
    assert_int_equal(channel_server_create(&server), 0);
    assert_true(channel_server_fd(server) >= 0);
    channel_server_close_fd(server);
    channel_server_close_fd(server);
    assert_int_equal(channel_server_fd(server), -1);
    channel_server_destroy(server);
    channel_server_destroy(NULL);
}

/* ---- who counts what is queued meanwhile ---- */

#define COUNTED 20000u

struct counter {
    const struct channel_server *server;
    atomic_bool ends;
    bool is_wrong;
};

static void *count_queued(void *context)
{
    struct counter *counter = context;
    uint32_t taken;

    while (!atomic_load(&counter->ends))
        if (channel_server_queued(counter->server, &taken) > REGION_RING_BYTES)
            counter->is_wrong = true;
    return NULL;
}

/* A data race between the two threads is what ThreadSanitizer would report. */
static void test_another_thread_counts_what_is_queued(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    pthread_t thread;

    channel_fixture_init(&fixture);
    struct counter counter = {.server = fixture.server};
    assert_int_equal(pthread_create(&thread, NULL, count_queued, &counter), 0);
    for (unsigned i = 0; i < COUNTED; i++) {
        assert_true(channel_fixture_send(&fixture.client, 5, 16, i));
        assert_int_equal(channel_server_next(fixture.server, &message), 16);
    }
    atomic_store(&counter.ends, true);
    pthread_join(thread, NULL);
    assert_false(counter.is_wrong);
    channel_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_that_do_not_exist),
        cmocka_unit_test(test_size_of_an_answer),
        cmocka_unit_test(test_an_unasked_answer_harms_nobody),
        cmocka_unit_test(test_a_region_full_of_garbage),
        cmocka_unit_test(test_a_command_longer_than_allowed),
        cmocka_unit_test(test_a_command_that_changes_after_it_was_taken),
        cmocka_unit_test(test_a_kick_ends_the_wait),
        cmocka_unit_test(test_the_descriptor_is_handed_over_once),
        cmocka_unit_test(test_another_thread_counts_what_is_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
