/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that is attached to a server which only the test plays. It has one device, a real
 * channel, and fence words that the test writes as the GPU does.
 */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel_server.h"
#include "client.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_context.h"
#include "client_entry.h"
#include "client_fence.h"
#include "client_printf.h"
#include "client_stream.h"
#include "client_thread.h"
#include "graph_model.h"
#include "host_function.h"
#include "sock.h"
#include "unit.h"
#include "wire_calls.h"

#define FIXTURE_WORDS 16u

/* A client and its tables are never freed (client.h), so there is nothing for LeakSanitizer to
 * find. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

/* What src/graph asks of the client about captures; its graphs proper are not linked here. */
static inline CUresult fixture_find_stream(CUstream handle, struct capture_stream **ret_stream)
{
    struct stream *stream;
    CUresult result = stream_enter(handle, &stream);

    if (result == CUDA_SUCCESS)
        *ret_stream = &stream->capture;
    return result;
}

static inline CUresult fixture_check_work(const struct graph_work *work)
{
    return CUDA_SUCCESS;
}

const struct graph_backend graph_backend = {
    .lock = &client_graph_lock,
    .hold = call_mutex_hold,
    .check_locked = fixture_check_work,
    .stream_locked = fixture_find_stream,
    .capture_begins_locked = capture_announce,
};

static struct client_fixture {
    struct channel_server *server;
    int ends[2]; /* 0 = client, 1 = server */
    _Atomic uint32_t fences[FIXTURE_WORDS], host_wait_words[FIXTURE_WORDS];
    struct device_record record;
    struct context *context; /* the primary one, active and current */
} fixture;

static inline void fixture_open_channel(struct channel *channel)
{
    assert_int_equal(sock_pair(fixture.ends), 0);
    assert_int_equal(channel_server_create(&fixture.server), 0);
    assert_int_equal(channel_open(channel, channel_server_fd(fixture.server), REGION_SIZE,
                                  REGION_RING_BYTES, fixture.ends[0]),
                     0);
    channel_server_close_fd(fixture.server);
}

/* The client is whole before it is the process's: the thread of host functions, which an earlier
 * test has left, may be looking at it. */
static inline void fixture_make_client(void)
{
    static uint32_t generation;
    struct client *made = calloc(1, sizeof(*made));

    fixture_open_channel(&made->channel);
    made->generation = ++generation;
    made->socket = fixture.ends[0];
    made->fences = fixture.fences;
    made->host_wait_words = fixture.host_wait_words;
    made->fence_count = made->host_wait_count = FIXTURE_WORDS;
    made->records = &fixture.record;
    made->device_count = 1;
    made->devices[0].record = &fixture.record;
    pthread_mutex_init(&made->socket_lock, NULL);
    pthread_mutex_init(&made->lock, NULL);
    list_init(&made->contexts);
    assert_int_equal(handles_init(&made->handles, 1000), 0);
    client = made;
    client_mode_word = CLIENT_FUNNEL;
}

/* Once, for its thread waits for work between the tests. */
static inline void fixture_init_host_functions(void)
{
    static bool done;

    if (!done)
        host_function_init();
    done = true;
}

static inline int fixture_setup(void **state)
{
    memset(&fixture, 0, sizeof(fixture));
    fixture.record.priority_greatest = -5;
    fixture_make_client();
    printf_output_init();
    assert_int_equal(fence_init(), 0);
    stream_init();
    capture_init();
    fixture_init_host_functions();
    assert_int_equal(context_init_primaries(), 0);
    fixture.context = client->devices[0].primary;
    fixture.context->active = true;
    thread_keep();
    assert_int_equal(context_stack_push(&thread_self()->stack, fixture.context->handle), 0);
    call_begin();
    *state = &fixture;
    return 0;
}

/* The client itself stays, as in a program: threads of the library may be inside. */
static inline int fixture_teardown(void **state)
{
    call_end();
    close(fixture.ends[1]);
    return 0;
}

/* The next command that the client has sent; 0 = none. */
static inline uint32_t fixture_next(const struct ring_message **ret_message)
{
    return channel_server_next(fixture.server, ret_message) > 0
               ? channel_kind_op((*ret_message)->kind)
               : 0;
}

/* The next command, which has to be this one, decoded. */
#define fixture_expect(name, ret_in)                                  \
    do {                                                              \
        const struct ring_message *message_;                          \
        assert_int_equal(fixture_next(&message_), WIRE_##name);       \
        assert_true(decode_##name(message_, message_->size, ret_in)); \
    } while (0)

static inline void fixture_expect_nothing(void)
{
    const struct ring_message *message;

    assert_int_equal(fixture_next(&message), 0);
}

/* Does what the GPU does behind all that was put on a stream so far. */
static inline void fixture_finish(const struct stream *stream)
{
    fixture.fences[stream->word] = fence_issued(stream->word);
}

/* A stream whose creation the server has read. */
static inline struct stream *fixture_stream(unsigned flags)
{
    struct wire_cuStreamCreateWithPriority in;
    struct stream *stream;
    CUstream handle;

    extern CUresult client_cuStreamCreate(CUstream * phStream, unsigned Flags);
    assert_int_equal(client_cuStreamCreate(&handle, flags), CUDA_SUCCESS);
    fixture_expect(cuStreamCreateWithPriority, &in);
    assert_int_equal(in.hStream, (uint64_t)handle);
    assert_int_equal(stream_resolve(fixture.context, handle, &stream), CUDA_SUCCESS);
    return stream;
}

#define FIXTURE_CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
