/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that may print: what their launches cost, when their output is collected, whose it is,
 * and how the turn passes on.
 */
#include "device_printf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_output.h"
#include "fake_driver.h"
#include "fence.h"
#include "session_life.h"

/* A driver with one buffer of output, and streams that are busy until they are asked so often. */
static struct {
    const char *text;
    size_t size;
    unsigned flushes, queries_left;
    bool has_more; /* the stream stays busy, behind what it had */
} gpu;

static CUresult flush(CUstream stream)
{
    gpu.flushes++;
    fwrite(gpu.text, 1, gpu.size, stdout);
    gpu.size = 0;
    return CUDA_SUCCESS;
}

static CUresult query_stream(CUstream stream)
{
    return gpu.queries_left || gpu.has_more ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult query_event(CUevent event)
{
    if (!gpu.queries_left)
        return CUDA_SUCCESS;
    gpu.queries_left--;
    return CUDA_ERROR_NOT_READY;
}

/* What the test program had, while the driver's output is captured. */
static struct {
    int output;
    FILE *errors;
} program;

static struct scene {
    struct fixture *fixture;
    struct session *session, *other;
    struct stream *stream, others; /* of the two */
    uint32_t head;                 /* of the output area of `session` */
} scene;

static int setup(void **state)
{
    const struct server_client who = {.identity.pid = 4712};
    int error = fixture_setup(state);

    if (error)
        return error;
    memset(&gpu, 0, sizeof(gpu));
    driver.cuStreamSynchronize = flush;
    driver.cuStreamQuery = query_stream;
    driver.cuEventQuery = query_event;
    scene = (struct scene){.fixture = *state};
    scene.session = scene.fixture->session;
    scene.session->phase = SESSION_SERVING;
    list_append(&scene.fixture->server.sessions, &scene.session->link);
    scene.stream = fixture_stream(scene.fixture, 1, CU_STREAM_NON_BLOCKING);
    scene.other = session_create(&scene.fixture->server, &who, 2);
    scene.others = (struct stream){.session = scene.other, .device = scene.stream->device};
    error = channel_server_create(&scene.other->channel);
    fake_trace();
    program.output = dup(STDOUT_FILENO);
    program.errors = stderr;
    return error ? error : driver_output_capture();
}

static int teardown(void **state)
{
    device_printf_forget(scene.other);
    device_printf_forget(scene.session);
    fflush(stdout);
    dup2(program.output, STDOUT_FILENO);
    close(program.output);
    stderr = program.errors;
    session_destroy(scene.other);
    list_remove(&scene.session->link);
    return fixture_teardown(state);
}

static void print(const char *text, size_t size)
{
    gpu.text = text;
    gpu.size = size;
}

static void launch(struct stream *stream)
{
    assert_int_equal(device_printf_begin(stream), CUDA_SUCCESS);
    device_printf_end(stream);
}

static bool is_pending(const struct session *session)
{
    return session->channel->region->output_pending;
}

/* Returns whether there is more. */
static bool collect(struct session *session, bool again)
{
    const struct wire_fnPrintfCollect in = {.again = again};
    struct wire_fnPrintfCollect_reply out;

    assert_int_equal(serve_fnPrintfCollect(session, &in, &out), CUDA_SUCCESS);
    return out.more;
}

static size_t take_output(char *ret_text, size_t size)
{
    return output_area_take(&scene.session->channel->region->output[OUTPUT_STDOUT], &scene.head,
                            ret_text, size);
}

static void expect_output(const char *text)
{
    char taken[100];
    size_t size = take_output(taken, sizeof(taken));

    assert_int_equal(size, strlen(text));
    assert_memory_equal(taken, text, size);
}

static void launches_make_no_call_of_the_driver(void **state)
{
    assert_false(is_pending(scene.session));
    for (int i = 0; i < 10; i++)
        launch(scene.stream);
    assert_true(is_pending(scene.session));
    assert_string_equal(fake_trace(), "");
    assert_int_equal(gpu.flushes, 0);
}

static void the_client_collects(void **state)
{
    launch(scene.stream);
    print("hello\n", 6);
    assert_false(collect(scene.session, false));
    assert_int_equal(gpu.flushes, 1);
    expect_output("hello\n");
    assert_false(is_pending(scene.session));
    assert_false(collect(scene.session, false));
    assert_int_equal(gpu.flushes, 1); /* it has no turn any more */
}

static void output_is_pending_while_kernels_run(void **state)
{
    launch(scene.stream);
    fence_expect_work(scene.stream);
    gpu.queries_left = 1;
    print("first ", 6);
    assert_false(collect(scene.session, false));
    assert_true(is_pending(scene.session));
    assert_false(device_printf_settle(scene.session));
    gpu.queries_left = 0;
    print("last", 4);
    assert_true(device_printf_settle(scene.session));
    assert_false(is_pending(scene.session));
    expect_output("first last");
}

/* A session that asks for the rest of it waits for no new output. */
static void much_output_arrives_whole(void **state)
{
    size_t size = 3 * OUTPUT_AREA_BYTES + 10, at = 0;
    char *text = malloc(size), *taken = malloc(size);
    unsigned rounds = 0;
    bool more;

    for (size_t i = 0; i < size; i++)
        text[i] = (char)(i * 7 % 251);
    launch(scene.stream);
    print(text, size);
    do {
        more = collect(scene.session, rounds++ > 0);
        assert_int_equal(is_pending(scene.session), more);
        at += take_output(taken + at, size - at);
    } while (more);
    assert_int_equal(rounds, 4);
    assert_int_equal(gpu.flushes, 1);
    assert_int_equal(at, size);
    assert_memory_equal(taken, text, size);
    free(text);
    free(taken);
}

/* The client does not ask for its output, but its kernels end. */
static void the_turn_passes_on(void **state)
{
    launch(scene.stream);
    fence_expect_work(scene.stream);
    gpu.queries_left = 20;
    print("of the first", 12);
    launch(&scene.others);
    assert_int_equal(gpu.queries_left, 0);
    expect_output("of the first");
    assert_true(is_pending(scene.session));
    assert_true(is_pending(scene.other));
    print("of the other", 12);
    assert_false(collect(scene.session, false));
    assert_false(is_pending(scene.session));
    expect_output("");
}

/* Kernels that do not print come behind the fence. */
static void later_work_is_not_waited_for(void **state)
{
    launch(scene.stream);
    gpu.has_more = true;
    fence_expect(scene.stream, 5);
    assert_false(device_printf_settle(scene.session));
    fence_write_now(scene.session->window, scene.stream->word, 5);
    assert_true(device_printf_settle(scene.session));
    assert_string_equal(fake_trace(), "");
}

/* The client may wait for the other one before it ends that wait. */
static void a_stream_that_waits_for_its_client_is_not_waited_for(void **state)
{
    launch(scene.stream);
    print_mark_before_wait(scene.stream);
    assert_string_equal(fake_trace(), "event e1; record e1 s1; ");
    gpu.has_more = true;
    launch(&scene.others);
    assert_string_equal(fake_trace(), "");
    assert_true(is_pending(scene.other));
}

/* Then it is no client's until they have ended. */
static void kernels_that_do_not_end_are_not_waited_for(void **state)
{
    launch(scene.stream);
    fence_expect_work(scene.stream);
    gpu.queries_left = UINT32_MAX;
    launch(&scene.others);
    print("of both", 7);
    assert_false(collect(scene.other, false));
    launch(&scene.others);
    gpu.queries_left = 0;
    print("of both", 7);
    assert_false(collect(scene.other, false));
    assert_false(collect(scene.session, false));
    expect_output("");
    launch(scene.stream);
    print("of one", 6);
    assert_false(collect(scene.session, false));
    expect_output("of one");
}

#define ROUNDS 3000

/* The letters that kernels of several sessions have printed. */
static struct {
    pthread_mutex_t lock;
    char letters[2 * ROUNDS];
    size_t count;
} fifo = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void print_letter(char letter)
{
    pthread_mutex_lock(&fifo.lock);
    fifo.letters[fifo.count++] = letter;
    pthread_mutex_unlock(&fifo.lock);
}

static CUresult flush_fifo(CUstream stream)
{
    pthread_mutex_lock(&fifo.lock);
    fwrite(fifo.letters, 1, fifo.count, stdout);
    fifo.count = 0;
    pthread_mutex_unlock(&fifo.lock);
    return CUDA_SUCCESS;
}

/* Some launches are collected by the other session, which waits for the turn. */
static void *print_in_rounds(void *context)
{
    const struct wire_fnPrintfTake in = {};
    struct stream *stream = context;

    for (unsigned round = 0; round < ROUNDS; round++) {
        if (device_printf_begin(stream) != CUDA_SUCCESS)
            break;
        print_letter(stream == &scene.others ? 'o' : 's');
        device_printf_end(stream);
        if (round % 3 == 0)
            serve_fnPrintfTake(stream->session, &in);
    }
    device_printf_settle(stream->session);
    return NULL;
}

static void expect_letters(const struct session *session, char letter)
{
    char taken[2 * ROUNDS];
    uint32_t head = 0;

    assert_int_equal(output_area_take(&session->channel->region->output[OUTPUT_STDOUT], &head,
                                      taken, sizeof(taken)),
                     ROUNDS);
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_int_equal(taken[i], letter);
}

static void output_of_several_never_mixes(void **state)
{
    pthread_t thread;

    driver.cuStreamSynchronize = flush_fifo;
    scene.other->phase = SESSION_SERVING;
    list_append(&scene.fixture->server.sessions, &scene.other->link);
    assert_int_equal(pthread_create(&thread, NULL, print_in_rounds, &scene.others), 0);
    print_in_rounds(scene.stream);
    pthread_join(thread, NULL);
    list_remove(&scene.other->link);
    expect_letters(scene.session, 's');
    expect_letters(scene.other, 'o');
}

static void a_session_that_ends_leaves_nothing(void **state)
{
    launch(&scene.others);
    print("of the other", 12);
    device_printf_forget(scene.other);
    launch(scene.stream);
    print("mine", 4);
    assert_false(collect(scene.session, false));
    expect_output("mine");
}

static void a_session_that_ends_does_not_wait(void **state)
{
    launch(&scene.others);
    scene.session->stop = true;
    assert_int_equal(device_printf_begin(scene.stream), CUDA_ERROR_MPS_CLIENT_TERMINATED);
    assert_false(is_pending(scene.session));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(launches_make_no_call_of_the_driver),
        CASE(the_client_collects),
        CASE(output_is_pending_while_kernels_run),
        CASE(much_output_arrives_whole),
        CASE(the_turn_passes_on),
        CASE(later_work_is_not_waited_for),
        CASE(a_stream_that_waits_for_its_client_is_not_waited_for),
        CASE(kernels_that_do_not_end_are_not_waited_for),
        CASE(output_of_several_never_mixes),
        CASE(a_session_that_ends_leaves_nothing),
        CASE(a_session_that_ends_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
