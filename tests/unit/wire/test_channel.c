/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end: commands, answers, errors, and a server that dies while a thread waits. */
#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "channel_fixture.h"
#include "channel_server.h"
#include "shm.h"

static uint32_t payload(const struct ring_message *message)
{
    return *(const uint32_t *)(message + 1);
}

static void test_kind_holds_call_and_slot(void **state)
{
    for (int slot = 0; slot < (int)REPLY_SLOTS; slot++) {
        uint32_t kind = channel_kind(0xffff, slot);
        assert_int_equal(channel_kind_op(kind), 0xffff);
        assert_int_equal(channel_kind_slot(kind), slot);
    }
    assert_int_equal(channel_kind_slot(channel_kind(7, CHANNEL_NO_SLOT)), CHANNEL_NO_SLOT);
    assert_int_equal(channel_kind_op(channel_kind(7, CHANNEL_NO_SLOT)), 7);
}

static void test_commands_arrive_in_order(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    for (uint32_t i = 0; i < 100; i++)
        assert_true(channel_fixture_send(&fixture.client, i, 12, i * i));
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(channel_server_next(fixture.server, &message), 16);
        assert_int_equal(message->kind, i);
        assert_int_equal(payload(message), i * i);
    }
    assert_int_equal(channel_server_next(fixture.server, &message), 0);
    channel_fixture_fini(&fixture);
}

static void test_rounding_bytes_are_zero(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    memset(fixture.client.ring_data, 0xff, REGION_RING_BYTES);
    assert_true(channel_fixture_send(&fixture.client, 1, 12, 2));
    assert_int_equal(channel_server_next(fixture.server, &message), 16);
    assert_int_equal(((const uint32_t *)message)[3], 0);
    channel_fixture_fini(&fixture);
}

static void test_sizes_of_commands(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    channel_fixture_init(&fixture);
    channel_lock(&fixture.client);
    assert_null(channel_reserve(&fixture.client, 7));
    assert_null(channel_reserve(&fixture.client, CHANNEL_MESSAGE_MAX + 1));
    assert_null(channel_reserve(&fixture.client, UINT32_MAX));
    assert_non_null(channel_reserve(&fixture.client, 8));
    assert_non_null(channel_reserve(&fixture.client, CHANNEL_MESSAGE_MAX));
    channel_commit(&fixture.client);
    channel_unlock(&fixture.client);
    assert_int_equal(channel_server_next(fixture.server, &message), CHANNEL_MESSAGE_MAX);
    channel_fixture_fini(&fixture);
}

static void test_call_that_waits_in_a_slot(void **state)
{
    struct channel_fixture fixture;
    const struct ring_message *message;
    struct ring_message header;
    channel_fixture_init(&fixture);
    struct channel *client = &fixture.client;
    int slot = channel_reply_begin(client);
    assert_null(channel_asked(client, slot, &header));
    assert_true(channel_fixture_send(client, channel_kind(5, slot), 24, 77));
    assert_int_equal(channel_server_next(fixture.server, &message), 32);
    for (uint32_t behind = 32; behind <= REGION_RING_BYTES; behind += 16) {
        message = channel_asked(client, slot, &header);
        assert_non_null(message);
        assert_int_equal(header.size, 32);
        assert_int_equal(header.kind, channel_kind(5, slot));
        assert_int_equal(payload(message), 77);
        assert_true(channel_fixture_send(client, 6, 16, 0));
        assert_int_equal(channel_server_next(fixture.server, &message), 16);
    }
    assert_null(channel_asked(client, slot, &header)); /* the last one has taken its place */
    channel_reply_end(client, slot);
    channel_fixture_fini(&fixture);
}

static void test_call_that_the_server_has_overwritten(void **state)
{
    const struct ring_message wrong[] = {
        {.size = 0, .kind = channel_kind(5, 0)},
        {.size = 64, .kind = channel_kind(5, 0)},
        {.size = 32, .kind = channel_kind(5, 1)},
        {.size = 32, .kind = 5},
    };
    struct channel_fixture fixture;
    struct ring_message header;
    channel_fixture_init(&fixture);
    int slot = channel_reply_begin(&fixture.client);
    assert_true(channel_fixture_send(&fixture.client, channel_kind(5, slot), 24, 77));
    void *message = (void *)channel_asked(&fixture.client, slot, &header);
    assert_non_null(message);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        memcpy(message, &wrong[i], sizeof(*wrong));
        assert_null(channel_asked(&fixture.client, slot, &header));
    }
    channel_reply_end(&fixture.client, slot);
    channel_fixture_fini(&fixture);
}

static void test_answer_with_data(void **state)
{
    struct channel_fixture fixture;
    const void *data;
    uint32_t size;
    channel_fixture_init(&fixture);
    int slot = channel_reply_begin(&fixture.client);
    assert_int_equal(channel_server_reply(fixture.server, slot, CUDA_ERROR_INVALID_PTX, "log", 4),
                     0);
    assert_int_equal(channel_reply_wait(&fixture.client, slot, &data, &size),
                     CUDA_ERROR_INVALID_PTX);
    assert_int_equal(size, 4);
    assert_string_equal(data, "log");
    channel_reply_end(&fixture.client, slot);
    channel_reply_end(&fixture.client, CHANNEL_NO_SLOT);
    assert_int_equal(fixture.client.busy_slots, 0);
    channel_fixture_fini(&fixture);
}

static void test_slots_are_distinct(void **state)
{
    struct channel_fixture fixture;
    uint32_t seen = 0;
    channel_fixture_init(&fixture);
    for (uint32_t i = 0; i < REPLY_SLOTS; i++)
        seen |= 1u << channel_reply_begin(&fixture.client);
    assert_int_equal(seen, UINT32_MAX);
    channel_reply_end(&fixture.client, 17);
    assert_int_equal(channel_reply_begin(&fixture.client), 17);
    channel_fixture_fini(&fixture);
}

/* ---- a server thread that echoes until it is told to stop ---- */

static void *serve(void *argument)
{
    struct channel_fixture *fixture = argument;
    const struct ring_message *message;
    for (;;) {
        int size = channel_server_next(fixture->server, &message);
        if (size < 0)
            return fixture;
        if (size == 0) {
            channel_server_wait(fixture->server, 0);
            continue;
        }
        uint32_t word = payload(message);
        if (word == 0)
            return NULL;
        int slot = channel_kind_slot(message->kind);
        if (slot != CHANNEL_NO_SLOT &&
            channel_server_reply(fixture->server, slot, CUDA_SUCCESS, &word, sizeof(word)) < 0)
            return fixture;
    }
}

static bool round_trip(struct channel *client, uint32_t word)
{
    const void *data;
    uint32_t size;
    int slot = channel_reply_begin(client);
    bool right = slot != CHANNEL_NO_SLOT &&
                 channel_fixture_send(client, channel_kind(1, slot), 32, word) &&
                 channel_reply_wait(client, slot, &data, &size) == CUDA_SUCCESS &&
                 size == sizeof(word) && memcmp(data, &word, sizeof(word)) == 0;
    channel_reply_end(client, slot);
    return right;
}

#define CALLERS 40 /* more than there are slots */
#define CALLS 200u

static void *call(void *argument)
{
    struct channel *client = argument;
    for (uint32_t i = 1; i <= CALLS; i++)
        if (!channel_fixture_send(client, channel_kind(2, CHANNEL_NO_SLOT), 16 + i, 1) ||
            !round_trip(client, i * 7))
            return client;
    return NULL;
}

static void test_many_threads_get_their_own_answers(void **state)
{
    struct channel_fixture fixture;
    pthread_t server, callers[CALLERS];
    void *failed;
    channel_fixture_init(&fixture);
    pthread_create(&server, NULL, serve, &fixture);
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, call, &fixture.client);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], &failed);
        assert_null(failed);
    }
    assert_true(channel_fixture_send(&fixture.client, 0, 12, 0));
    pthread_join(server, &failed);
    assert_null(failed);
    assert_int_equal(fixture.client.busy_slots, 0);
    channel_fixture_fini(&fixture);
}

static void test_a_full_ring_makes_the_sender_wait(void **state)
{
    struct channel_fixture fixture;
    pthread_t server;
    void *failed;
    channel_fixture_init(&fixture);
    pthread_create(&server, NULL, serve, &fixture);
    for (uint32_t i = 0; i < 500; i++)
        assert_true(channel_fixture_send(&fixture.client, 1, CHANNEL_MESSAGE_MAX - i, 1));
    assert_true(channel_fixture_send(&fixture.client, 0, 12, 0));
    pthread_join(server, &failed);
    assert_null(failed);
    channel_fixture_fini(&fixture);
}

/* ---- a server that dies ---- */

static void *wait_in_vain(void *argument)
{
    struct channel *client = argument;
    const void *data;
    uint32_t size;
    int slot = channel_reply_begin(client);
    CUresult result = channel_reply_wait(client, slot, &data, &size);
    channel_reply_end(client, slot);
    return (void *)(intptr_t)result;
}

static void test_a_caller_notices_that_the_server_is_gone(void **state)
{
    struct channel_fixture fixture;
    pthread_t caller;
    void *result;
    channel_fixture_init(&fixture);
    assert_true(channel_alive(&fixture.client));
    pthread_create(&caller, NULL, wait_in_vain, &fixture.client);
    channel_fixture_server_dies(&fixture);
    pthread_join(caller, &result);
    assert_int_equal((intptr_t)result, CUDA_ERROR_MPS_RPC_FAILURE);
    assert_false(channel_alive(&fixture.client));
    assert_int_equal(channel_error(&fixture.client), CUDA_ERROR_MPS_RPC_FAILURE);
    assert_int_equal(channel_reply_begin(&fixture.client), CHANNEL_NO_SLOT);
    channel_fixture_fini(&fixture);
}

static void test_a_sender_at_a_full_ring_notices_that_the_server_is_gone(void **state)
{
    struct channel_fixture fixture;
    uint32_t sent = 0;
    channel_fixture_init(&fixture);
    channel_fixture_server_dies(&fixture);
    while (channel_fixture_send(&fixture.client, 1, CHANNEL_MESSAGE_MAX, 1))
        sent++;
    assert_int_equal(sent, REGION_RING_BYTES / CHANNEL_MESSAGE_MAX);
    assert_int_equal(channel_error(&fixture.client), CUDA_ERROR_MPS_RPC_FAILURE);
    channel_fixture_fini(&fixture);
}

static void test_one_who_waits_for_a_slot_notices_that_the_server_is_gone(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    for (uint32_t i = 0; i < REPLY_SLOTS; i++)
        assert_int_not_equal(channel_reply_begin(&fixture.client), CHANNEL_NO_SLOT);
    channel_fixture_server_dies(&fixture);
    assert_int_equal(channel_reply_begin(&fixture.client), CHANNEL_NO_SLOT);
    channel_fixture_fini(&fixture);
}

static void test_an_answer_before_the_end_still_counts(void **state)
{
    struct channel_fixture fixture;
    const void *data;
    uint32_t size;
    channel_fixture_init(&fixture);
    int slot = channel_reply_begin(&fixture.client);
    assert_int_equal(channel_server_reply(fixture.server, slot, CUDA_SUCCESS, NULL, 0), 0);
    channel_fixture_server_dies(&fixture);
    assert_int_equal(channel_reply_wait(&fixture.client, slot, &data, &size), CUDA_SUCCESS);
    channel_fixture_fini(&fixture);
}

/* ---- errors ---- */

static void test_a_failed_client_is_told_why_at_once(void **state)
{
    struct channel_fixture fixture;
    pthread_t caller;
    void *result;
    channel_fixture_init(&fixture);
    pthread_create(&caller, NULL, wait_in_vain, &fixture.client);
    while (atomic_load_explicit(&fixture.client.busy_slots, memory_order_acquire) == 0)
        ;
    channel_server_fail(fixture.server, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    channel_server_fail(fixture.server, CUDA_ERROR_LAUNCH_FAILED);
    pthread_join(caller, &result);
    assert_int_equal((intptr_t)result, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    assert_int_equal(channel_error(&fixture.client), CUDA_ERROR_MPS_CLIENT_TERMINATED);
    channel_fixture_server_dies(&fixture);
    assert_false(channel_alive(&fixture.client));
    assert_int_equal(channel_error(&fixture.client), CUDA_ERROR_MPS_CLIENT_TERMINATED);
    channel_fixture_fini(&fixture);
}

static void test_a_deferred_error_is_handed_out_once(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    assert_int_equal(channel_take_deferred_error(&fixture.client), CUDA_SUCCESS);
    channel_server_defer(fixture.server, CUDA_ERROR_INVALID_VALUE);
    channel_server_defer(fixture.server, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(channel_error(&fixture.client), CUDA_SUCCESS);
    assert_int_equal(channel_take_deferred_error(&fixture.client), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(channel_take_deferred_error(&fixture.client), CUDA_SUCCESS);
    channel_fixture_fini(&fixture);
}

/* ---- opening ---- */

static int open_region(int fd, size_t size, uint32_t ring_bytes)
{
    struct channel client;
    return channel_open(&client, fd, size, ring_bytes, -1);
}

static void test_a_wrong_region_is_refused(void **state)
{
    struct channel_server *server;
    int zeros, unsealed = memfd_create("test", 0);
    assert_int_equal(channel_server_create(&server), 0);
    int fd = channel_server_fd(server);
    assert_int_equal(shm_create("test", REGION_SIZE, &zeros), 0);
    assert_int_equal(ftruncate(unsealed, (off_t)REGION_SIZE), 0);
    assert_int_equal(open_region(fd, REGION_SIZE + 1, REGION_RING_BYTES), -EPROTO);
    assert_int_equal(open_region(fd, REGION_SIZE - 1, REGION_RING_BYTES), -EPROTO);
    assert_int_equal(open_region(fd, REGION_SIZE, REGION_RING_BYTES / 2), -EPROTO);
    assert_int_equal(open_region(fd, REGION_SIZE, REGION_RING_BYTES - 4096), -EPROTO);
    assert_int_equal(open_region(fd, REGION_SIZE, 0), -EPROTO);
    assert_int_equal(open_region(zeros, REGION_SIZE, REGION_RING_BYTES), -EPROTO);
    assert_int_equal(open_region(unsealed, REGION_SIZE, REGION_RING_BYTES), -EPROTO);
    assert_int_equal(open_region(-1, REGION_SIZE, REGION_RING_BYTES), -EPROTO);
    close(zeros);
    close(unsealed);
    channel_server_destroy(server);
}

static struct channel_fixture *reviving;
static struct channel_server *successor;

/* Another server takes over, and what the last one has not read is sent again. */
static bool revive(void)
{
    struct channel *client = &reviving->client;
    const unsigned char *unread;
    unsigned char messages[64];
    uint32_t size = channel_unread(client, &unread);
    assert_in_range(size, 16, sizeof(messages));
    memcpy(messages, unread, size);
    struct channel_server *made;
    assert_int_equal(channel_server_create(&made), 0);
    assert_int_equal(
        channel_reopen(client, channel_server_fd(made), REGION_SIZE, REGION_RING_BYTES), 0);
    client->socket = dup(reviving->ends[0]);
    assert_int_equal(channel_send_again(client, messages, size), 0);
    __atomic_store_n(&successor, made, __ATOMIC_RELEASE);
    return true;
}

static void *answer_again(void *unused)
{
    const struct ring_message *message = NULL;
    while (!__atomic_load_n(&successor, __ATOMIC_ACQUIRE))
        usleep(1000);
    while (channel_server_next(successor, &message) == 0)
        channel_server_wait(successor, 0);
    assert_int_equal(channel_kind_op(message->kind), 9);
    channel_server_reply(successor, channel_kind_slot(message->kind), CUDA_SUCCESS, "yes", 4);
    return NULL;
}

static void test_one_who_waits_is_answered_by_the_next_server(void **state)
{
    struct channel_fixture fixture;
    const void *data;
    uint32_t size;
    pthread_t thread;
    channel_fixture_init(&fixture);
    reviving = &fixture;
    fixture.client.revive = revive;
    int slot = channel_reply_begin(&fixture.client);
    assert_true(channel_fixture_send(&fixture.client, channel_kind(9, slot), 16, 0));
    assert_int_equal(fixture.client.sent, 16);
    assert_int_equal(fixture.client.used[0], 1u << 9);
    assert_int_equal(pthread_create(&thread, NULL, answer_again, NULL), 0);
    channel_fixture_server_dies(&fixture);
    assert_int_equal(channel_reply_wait(&fixture.client, slot, &data, &size), CUDA_SUCCESS);
    assert_string_equal(data, "yes");
    channel_reply_end(&fixture.client, slot);
    assert_int_equal(fixture.client.broken, 0);
    pthread_join(thread, NULL);
    close(fixture.client.socket);
    channel_server_destroy(successor);
    channel_fixture_fini(&fixture);
}

/* Another thread has noticed the end since this one's call began. */
static void test_a_call_that_begins_after_the_end_moves_too(void **state)
{
    struct channel_fixture fixture;
    const unsigned char *unread;
    channel_fixture_init(&fixture);
    reviving = &fixture;
    fixture.client.revive = revive;
    int early = channel_reply_begin(&fixture.client);
    channel_fixture_server_dies(&fixture);
    assert_false(channel_alive(&fixture.client));
    assert_true(channel_fixture_send(&fixture.client, channel_kind(9, early), 16, 0));
    assert_int_equal(channel_unread(&fixture.client, &unread), 16);
    assert_int_not_equal(channel_reply_begin(&fixture.client), CHANNEL_NO_SLOT);
    assert_int_equal(fixture.client.broken, 0);
    close(fixture.client.socket);
    channel_server_destroy(successor);
    channel_fixture_fini(&fixture);
}

static void test_a_client_that_knows_of_the_end_is_not_moved(void **state)
{
    struct channel_fixture fixture;
    channel_fixture_init(&fixture);
    channel_give_up(&fixture.client, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(channel_sticky_error(&fixture.client), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fixture.client.broken, 0);
    assert_int_equal(channel_reply_begin(&fixture.client), CHANNEL_NO_SLOT);
    assert_int_equal(fixture.client.broken, 1);
    channel_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kind_holds_call_and_slot),
        cmocka_unit_test(test_commands_arrive_in_order),
        cmocka_unit_test(test_rounding_bytes_are_zero),
        cmocka_unit_test(test_sizes_of_commands),
        cmocka_unit_test(test_call_that_waits_in_a_slot),
        cmocka_unit_test(test_call_that_the_server_has_overwritten),
        cmocka_unit_test(test_answer_with_data),
        cmocka_unit_test(test_slots_are_distinct),
        cmocka_unit_test(test_many_threads_get_their_own_answers),
        cmocka_unit_test(test_a_full_ring_makes_the_sender_wait),
        cmocka_unit_test(test_a_caller_notices_that_the_server_is_gone),
        cmocka_unit_test(test_a_sender_at_a_full_ring_notices_that_the_server_is_gone),
        cmocka_unit_test(test_one_who_waits_for_a_slot_notices_that_the_server_is_gone),
        cmocka_unit_test(test_an_answer_before_the_end_still_counts),
        cmocka_unit_test(test_a_failed_client_is_told_why_at_once),
        cmocka_unit_test(test_a_deferred_error_is_handed_out_once),
        cmocka_unit_test(test_a_wrong_region_is_refused),
        cmocka_unit_test(test_one_who_waits_is_answered_by_the_next_server),
        cmocka_unit_test(test_a_call_that_begins_after_the_end_moves_too),
        cmocka_unit_test(test_a_client_that_knows_of_the_end_is_not_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
