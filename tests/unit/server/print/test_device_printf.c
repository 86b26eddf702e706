/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that may print: what their launches cost, when their output is collected, and whose it
 * is.
 */
#include "channel_server.h"
#include "device_printf.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver_output.h"
#include "fake_driver.h"
#include "fence.h"
#include "session_life.h"
#include "stream_state.h"

#define PARTS_MAX 16u

/* A driver with one buffer of output, whose parts it writes one by one, and busy streams. */
static struct {
    struct {
        const char *text;
        size_t size;
    } parts[PARTS_MAX];
    unsigned count;
    unsigned flushes;
    bool is_busy;
} gpu;

static CUresult flush(CUstream stream)
{
    gpu.flushes++;
    for (unsigned i = 0; i < gpu.count; i++)
        fwrite(gpu.parts[i].text, 1, gpu.parts[i].size, stdout);
    gpu.count = 0;
    return CUDA_SUCCESS;
}

static CUresult query_stream(CUstream stream)
{
    return gpu.is_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* What the test program had, while the driver's output is captured. */
static struct {
    int descriptor;
    FILE *output, *errors;
} program;

static struct scene {
    struct fixture *fixture;
    struct session *session, *other;
    struct stream *stream, others; /* of the two */
    struct print_formats *formats, *other_formats;
    uint32_t head, other_head; /* of their output areas */
} scene;

static const char FORMATS[] = "step %d of %d\n\0done\n";
static const char OTHER_FORMATS[] = "loss %f\n";

static int setup(void **state)
{
    const struct server_client who = {.identity.pid = 4712};
    int error = fixture_setup(state);

    if (error)
        return error;
    memset(&gpu, 0, sizeof(gpu));
    driver.cuStreamSynchronize = flush;
    driver.cuStreamQuery = query_stream;
    scene = (struct scene){.fixture = *state};
    scene.session = scene.fixture->session;
    scene.session->phase = SESSION_SERVING;
    list_append(&scene.fixture->server.sessions, &scene.session->link);
    scene.stream = fixture_stream(scene.fixture, 1, CU_STREAM_NON_BLOCKING);
    scene.other = session_create(&scene.fixture->server, &who, 2);
    scene.others = (struct stream){.session = scene.other,
                                   .device = scene.stream->device,
                                   .in_flight = &scene.other->streams->in_flight[1]};
    error = channel_server_create(&scene.other->channel);
    fake_trace();
    scene.formats = print_formats_create(FORMATS, sizeof(FORMATS));
    scene.other_formats = print_formats_create(OTHER_FORMATS, sizeof(OTHER_FORMATS));
    program.descriptor = dup(STDOUT_FILENO);
    program.output = stdout;
    program.errors = stderr;
    return error ? error : driver_output_capture();
}

static int teardown(void **state)
{
    device_printf_forget(scene.other);
    device_printf_forget(scene.session);
    dup2(program.descriptor, STDOUT_FILENO);
    close(program.descriptor);
    stdout = program.output;
    stderr = program.errors;
    print_formats_unref(scene.formats);
    print_formats_unref(scene.other_formats);
    session_destroy(scene.other);
    list_remove(&scene.session->link);
    return fixture_teardown(state);
}

static void print_part(const char *text, size_t size)
{
    assert_true(gpu.count < PARTS_MAX);
    gpu.parts[gpu.count].text = text;
    gpu.parts[gpu.count++].size = size;
}

/* A record, each part by itself; ends with NULL. */
static void print(const char *part, ...)
{
    va_list parts;

    va_start(parts, part);
    for (; part; part = va_arg(parts, const char *))
        print_part(part, strlen(part));
    va_end(parts);
}

static void print_step(const char *step)
{
    print(step, " of 9", "\n", NULL);
}

static void launch_in(struct stream *stream, struct print_formats *formats)
{
    device_printf_begin(stream->session, stream->device, formats);
    print_checkpoint_open(stream);
    fence_expect_work(stream);
}

static void launch(struct stream *stream)
{
    launch_in(stream, scene.formats);
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

/* Takes what has arrived since the last time. */
static size_t take_output(const struct session *session, char *ret_text, size_t size)
{
    return output_area_take(&session->channel->region->output[OUTPUT_STDOUT],
                            session == scene.other ? &scene.other_head : &scene.head, ret_text,
                            size);
}

static void expect_output_of(const struct session *session, const char *text)
{
    char taken[200];
    size_t size = take_output(session, taken, sizeof(taken) - 1);

    taken[size] = '\0';
    assert_string_equal(taken, text);
}

static void expect_output(const char *text)
{
    expect_output_of(scene.session, text);
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
    print("done\n", NULL);
    assert_false(collect(scene.session, false));
    assert_int_equal(gpu.flushes, 1);
    expect_output("done\n");
    assert_false(is_pending(scene.session));
    assert_false(collect(scene.session, false));
    assert_int_equal(gpu.flushes, 1); /* there is nothing to collect */
}

static void output_is_pending_while_kernels_run(void **state)
{
    launch(scene.stream);
    gpu.is_busy = true;
    print_step("step 1");
    assert_false(collect(scene.session, false));
    assert_true(is_pending(scene.session));
    assert_false(device_printf_settle(scene.session));
    gpu.is_busy = false;
    print("done\n", NULL);
    assert_true(device_printf_settle(scene.session));
    assert_false(is_pending(scene.session));
    expect_output("step 1 of 9\ndone\n");
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
    print_part(text, size);
    do {
        more = collect(scene.session, rounds++ > 0);
        assert_int_equal(is_pending(scene.session), more);
        at += take_output(scene.session, taken + at, size - at);
    } while (more);
    assert_int_equal(rounds, 4);
    assert_int_equal(gpu.flushes, 1);
    assert_int_equal(at, size);
    assert_memory_equal(taken, text, size);
    free(text);
    free(taken);
}

/* Kernels that do not print come behind the fence. */
static void later_work_is_not_waited_for(void **state)
{
    launch(scene.stream);
    gpu.is_busy = true;
    fence_expect(scene.stream, 5);
    assert_false(device_printf_settle(scene.session));
    fence_write_now(scene.stream, 5);
    assert_true(device_printf_settle(scene.session));
    assert_string_equal(fake_trace(), "");
}

/* Both have kernels in flight, and the other one collects first. */
static void formats_tell_whose_it_is(void **state)
{
    launch(scene.stream);
    launch_in(&scene.others, scene.other_formats);
    print_step("step 1");
    print("loss 0.5", "\n", NULL);
    print_step("step 2");
    assert_false(collect(scene.other, false));
    expect_output_of(scene.other, "loss 0.5\n");
    assert_false(collect(scene.session, false));
    expect_output("step 1 of 9\nstep 2 of 9\n");
}

/* As kernels of NCCL may. */
static void a_client_that_does_not_print_gets_nothing(void **state)
{
    gpu.is_busy = true;
    launch_in(&scene.others, scene.other_formats);
    for (unsigned i = 0; i < 3; i++) {
        launch(scene.stream);
        print("done\n", NULL);
        assert_false(collect(scene.other, false));
        assert_false(collect(scene.session, false));
        expect_output("done\n");
        expect_output_of(scene.other, "");
    }
}

/* A copy whose kernels are not in flight has printed nothing. */
static void copies_one_after_the_other_get_their_own(void **state)
{
    launch(scene.stream);
    print_step("step 1");
    assert_false(collect(scene.session, false));
    launch_in(&scene.others, scene.formats);
    print_step("step 2");
    assert_false(collect(scene.other, false));
    expect_output("step 1 of 9\n");
    expect_output_of(scene.other, "step 2 of 9\n");
}

/* No copy misses its own. */
static void copies_at_once_get_all_lines(void **state)
{
    launch(scene.stream);
    launch_in(&scene.others, scene.formats);
    print_step("step 1");
    print_step("step 2");
    assert_false(collect(scene.session, false));
    assert_false(collect(scene.other, false));
    expect_output("step 1 of 9\nstep 2 of 9\n");
    expect_output_of(scene.other, "step 1 of 9\nstep 2 of 9\n");
}

/* A kernel may put its format together. */
static void output_that_no_format_explains_goes_to_all(void **state)
{
    launch(scene.stream);
    launch_in(&scene.others, scene.other_formats);
    print("surprise", "\n", NULL);
    assert_false(collect(scene.session, false));
    assert_false(collect(scene.other, false));
    expect_output("surprise\n");
    expect_output_of(scene.other, "surprise\n");
}

static void output_that_no_format_explains_is_of_unknown_formats(void **state)
{
    launch(scene.stream);
    launch_in(&scene.others, NULL);
    print("surprise", "\n", NULL);
    print("done\n", NULL);
    assert_false(collect(scene.session, false));
    assert_false(collect(scene.other, false));
    expect_output("done\n");
    expect_output_of(scene.other, "surprise\n");
}

/* The other client's output is being written, which takes its time. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, over;
} writing = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static CUresult flush_slowly(CUstream stream)
{
    pthread_mutex_lock(&writing.lock);
    writing.begun = true;
    pthread_cond_broadcast(&writing.changed);
    while (!writing.over)
        pthread_cond_wait(&writing.changed, &writing.lock);
    pthread_mutex_unlock(&writing.lock);
    return flush(stream);
}

static void *collect_for_other(void *unused)
{
    collect(scene.other, false);
    return NULL;
}

static void await_writing(void)
{
    pthread_mutex_lock(&writing.lock);
    while (!writing.begun)
        pthread_cond_wait(&writing.changed, &writing.lock);
    pthread_mutex_unlock(&writing.lock);
}

static void end_writing(void)
{
    pthread_mutex_lock(&writing.lock);
    writing.over = true;
    pthread_cond_broadcast(&writing.changed);
    pthread_mutex_unlock(&writing.lock);
}

static void a_launch_waits_for_no_output(void **state)
{
    pthread_t thread;

    driver.cuStreamSynchronize = flush_slowly;
    launch_in(&scene.others, scene.formats);
    print("done\n", NULL);
    assert_int_equal(pthread_create(&thread, NULL, collect_for_other, NULL), 0);
    await_writing();
    launch_in(scene.stream, scene.other_formats);
    launch_in(scene.stream, NULL);
    assert_true(is_pending(scene.session));
    end_writing();
    pthread_join(thread, NULL);
    expect_output_of(scene.other, "done\n");
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
    for (size_t i = 0; i < fifo.count; i++)
        fwrite(&fifo.letters[i], 1, 1, stdout);
    fifo.count = 0;
    pthread_mutex_unlock(&fifo.lock);
    return CUDA_SUCCESS;
}

/* Some letters are collected by the other session. */
static void *print_in_rounds(void *context)
{
    const struct wire_fnPrintfTake in = {};
    struct stream *stream = context;
    struct print_formats *formats = print_formats_create(stream == &scene.others ? "o" : "s", 2);

    for (unsigned round = 0; round < ROUNDS; round++) {
        device_printf_begin(stream->session, stream->device, formats);
        print_checkpoint_open(stream);
        print_letter(stream == &scene.others ? 'o' : 's');
        if (round % 3 == 0)
            serve_fnPrintfTake(stream->session, &in);
    }
    device_printf_settle(stream->session);
    print_formats_unref(formats);
    return NULL;
}

static void expect_letters(const struct session *session, char letter)
{
    char taken[2 * ROUNDS];

    assert_int_equal(take_output(session, taken, sizeof(taken)), ROUNDS);
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
    launch_in(&scene.others, scene.formats);
    print_step("of the other");
    device_printf_forget(scene.other);
    launch(scene.stream);
    print("done\n", NULL);
    assert_false(collect(scene.session, false));
    expect_output("done\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(launches_make_no_call_of_the_driver),
        CASE(the_client_collects),
        CASE(output_is_pending_while_kernels_run),
        CASE(much_output_arrives_whole),
        CASE(later_work_is_not_waited_for),
        CASE(formats_tell_whose_it_is),
        CASE(a_client_that_does_not_print_gets_nothing),
        CASE(copies_one_after_the_other_get_their_own),
        CASE(copies_at_once_get_all_lines),
        CASE(output_that_no_format_explains_goes_to_all),
        CASE(output_that_no_format_explains_is_of_unknown_formats),
        CASE(a_launch_waits_for_no_output),
        CASE(output_of_several_never_mixes),
        CASE(a_session_that_ends_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
