/* SPDX-License-Identifier: Apache-2.0 */
/* Device printf output: written where a thread synchronizes, kept where it only asks. */
#include "channel_server.h"
#include "client_printf.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "client_fixture.h"
#include "client_prototypes.h"
#include "stream_commands.h"
#include "stream_wait.h"

static struct {
    int terminal, file; /* what stdout was, and what it is during a test */
    char read[4096];
} output;

static int setup(void **state)
{
    fflush(stdout);
    output.terminal = dup(STDOUT_FILENO);
    output.file = memfd_create("output", 0);
    dup2(output.file, STDOUT_FILENO);
    return fixture_setup(state);
}

static int teardown(void **state)
{
    fflush(stdout);
    dup2(output.terminal, STDOUT_FILENO);
    close(output.terminal);
    close(output.file);
    return fixture_teardown(state);
}

static void print(const char *text)
{
    assert_int_equal(channel_server_put_output(fixture.server, OUTPUT_STDOUT, text, strlen(text)),
                     strlen(text));
}

static const char *written(void)
{
    ssize_t size = pread(output.file, output.read, sizeof(output.read) - 1, 0);

    output.read[size > 0 ? size : 0] = '\0';
    return output.read;
}

static void test_synchronizing_writes(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    print("hello\n");
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "hello\n");
}

static void test_asking_keeps_for_the_next_that_synchronizes(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    print("first\n");
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "");
    print("second\n");
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "first\nsecond\n");
}

static void test_output_before_an_error_is_written(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    stream_begin(stream);
    stream_end();
    print("last\n");
    channel_server_fail(fixture.server, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(stream_synchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_string_equal(written(), "last\n");
}

static void test_new_client_does_not_write_what_another_kept(void **state)
{
    print("of the parent\n");
    printf_output_take();
    printf_output_init();
    printf_output_write();
    assert_string_equal(written(), "");
}

/* The next command, which the server waits for. */
static struct ring_message next_command(void)
{
    const struct ring_message *message;

    while (channel_server_next(fixture.server, &message) <= 0)
        channel_server_wait(fixture.server, 1000000);
    return *message;
}

static void answer(struct ring_message command, uint32_t more)
{
    const struct wire_fnPrintfCollect_reply out = {.more = more};
    unsigned char buffer[REPLY_DATA_MAX];
    uint32_t size = encode_fnPrintfCollect_reply(buffer, &out);

    channel_server_reply(fixture.server, channel_kind_slot(command.kind), CUDA_SUCCESS, buffer,
                         size);
}

/* A server that has no room for all of the output at once. */
static void *collect_in_two_parts(void *unused)
{
    struct ring_message command = next_command();

    while (channel_kind_op(command.kind) != WIRE_fnPrintfCollect)
        command = next_command();
    print("one, ");
    answer(command, 1);
    command = next_command();
    print("two");
    channel_server_set_output_pending(fixture.server, false);
    answer(command, 0);
    return NULL;
}

static void test_synchronizing_has_the_output_collected(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    pthread_t server;

    channel_server_set_output_pending(fixture.server, true);
    assert_int_equal(pthread_create(&server, NULL, collect_in_two_parts, NULL), 0);
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_string_equal(written(), "one, two");
    pthread_join(server, NULL);
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
}

static uint32_t last_command(void)
{
    const struct ring_message *message;
    uint32_t op = 0;

    while (channel_server_next(fixture.server, &message) > 0)
        op = channel_kind_op(message->kind);
    return op;
}

static void test_asking_waits_for_nothing(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);

    channel_server_set_output_pending(fixture.server, true);
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(last_command(), WIRE_fnPrintfTake);
}

/* The server has not taken what was sent last. */
static void test_waiting_for_an_event_waits_for_nothing_else(void **state)
{
    CUevent event;

    assert_int_equal(client_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    channel_server_set_output_pending(fixture.server, true);
    assert_int_equal(client_cuEventSynchronize(event), CUDA_SUCCESS);
    assert_int_equal(last_command(), WIRE_fnPrintfTake);
    assert_int_equal(client_cuEventDestroy_v2(event), CUDA_SUCCESS);
}

/* Each question gets an empty answer. */
static void *answer_all(void *unused)
{
    for (unsigned i = 0; i < PRINTF_EMPTY_MOST;) {
        struct ring_message command = next_command();

        if (channel_kind_op(command.kind) != WIRE_fnPrintfCollect)
            continue;
        answer(command, 0);
        i++;
    }
    return NULL;
}

/* Until there is some, then it is asked each time again. */
static void test_a_client_without_prints_is_not_asked_each_time(void **state)
{
    struct stream *stream = fixture_stream(CU_STREAM_NON_BLOCKING);
    pthread_t server;

    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    printf_output_init();
    printf_output_empty_pause_ns = UINT64_MAX;
    channel_server_set_output_pending(fixture.server, true);
    assert_int_equal(pthread_create(&server, NULL, answer_all, NULL), 0);
    for (unsigned i = 0; i < PRINTF_EMPTY_MOST; i++)
        assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    pthread_join(server, NULL);
    last_command();
    assert_int_equal(client_cuStreamSynchronize((CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(last_command(), 0);
    print("hello\n");
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(last_command(), 0);
    assert_int_equal(client_cuStreamQuery((CUstream)stream->handle), CUDA_SUCCESS);
    assert_int_equal(last_command(), WIRE_fnPrintfTake);
    printf_output_init();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_synchronizing_writes),
        CASE(test_asking_keeps_for_the_next_that_synchronizes),
        CASE(test_output_before_an_error_is_written),
        CASE(test_new_client_does_not_write_what_another_kept),
        CASE(test_synchronizing_has_the_output_collected),
        CASE(test_asking_waits_for_nothing),
        CASE(test_waiting_for_an_event_waits_for_nothing_else),
        CASE(test_a_client_without_prints_is_not_asked_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
