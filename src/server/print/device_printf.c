/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which client prints, and when its output has arrived.
 *
 * In each context one client at a time holds the turn: from the launch of a kernel that may print
 * until such kernels are done and the driver has written out their output, which is then that
 * client's. An
 * event behind every such launch, and behind every fence that comes while the turn is held, tells a
 * thread how far the GPU is. The thread writes those fences itself, behind the output. So no thread
 * waits inside the driver for a client, and a worker waits only for the turn.
 *
 * A client that keeps the turn for too long (its kernel may wait for something) is not waited for:
 * then the owner of the output is not known any more, and the output goes to the log until no
 * kernel that may print is left.
 */
#include "print_state.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "cuda_error.h"
#include "driver_output.h"
#include "fence.h"
#include "futex.h"
#include "host_wait.h"
#include "log.h"
#include "spare_events.h"
#include "stream.h"
#include "window.h"

#define PAUSE_NS_MIN (20 * NS_PER_US)
#define PAUSE_NS_MAX (2 * NS_PER_MS)
#define FAULT_TIMEOUT_S 1
#define LOGGED_MAX 1024 /* bytes of output in one line of the log */

static void on_stream_closing(struct stream *stream);
static bool write_deferred_fence(struct stream *stream, uint32_t seq);

int server_printf_init(struct server *server)
{
    struct server_printf *printer = calloc(1, sizeof(*printer));

    if (!printer)
        return -ENOMEM;
    printer->server = server;
    pthread_mutex_init(&printer->lock, NULL);
    list_init(&printer->marks);
    list_init(&printer->active);
    printer->stream_observer.closing = on_stream_closing;
    server_streams_observe(server, &printer->stream_observer);
    fences_set_deferred_writer(server, write_deferred_fence);
    server->printf = printer;
    return 0;
}

void server_printf_fini(struct server *server)
{
    struct server_printf *printer = server->printf;

    if (printer && printer->started) {
        pthread_mutex_lock(&printer->lock);
        printer->stopping = true;
        pthread_cond_broadcast(&printer->work);
        pthread_mutex_unlock(&printer->lock);
        pthread_join(printer->thread, NULL);
    }
    free(printer);
}

int session_printf_init(struct session *session)
{
    session->printf = calloc(1, sizeof(*session->printf));
    if (!session->printf)
        return -ENOMEM;
    list_init(&session->printf->link);
    session->printf->session = session;
    return 0;
}

void session_printf_fini(struct session *session)
{
    free(session->printf);
}

static void activate_locked(struct server_printf *printer, struct session *session)
{
    if (fences_are_deferred(session))
        return;
    list_append(&printer->active, &session->printf->link);
    fences_defer(session, true);
}

static struct printf_turn *turn_of(struct server_printf *printer, const struct device *device)
{
    return &printer->turns[device->index];
}

static void remove_mark_locked(struct printf_mark *mark)
{
    list_remove(&mark->link);
    spare_event_keep(mark->device, mark->event);
    free(mark);
}

/* ---- output ---- */

static bool host_waits_exist_locked(struct server_printf *printer)
{
    list_for_each (struct printf_mark, mark, &printer->marks, link) {
        if (mark->may_be_blocked)
            return true;
    }
    return false;
}

/*
 * Every synchronizing call makes the driver write out its buffer. None of these waits for anything,
 * because the event has completed.
 *
 * But what is put into a stream, even a wait for a completed event, goes through one of the GPU's
 * queues, which are fewer than streams. A stream in the same queue that waits for its client would
 * block it, until the client has seen a fence that only this thread can write. So nothing is put
 * into a stream while streams of a client that prints may wait for it.
 */
static void flush_behind_locked(struct server_printf *printer, const struct printf_mark *mark)
{
    CUstream *flush = &turn_of(printer, mark->device)->flush;

    if (!*flush && driver.cuStreamCreateWithPriority(flush, CU_STREAM_NON_BLOCKING, 0))
        return;
    if (!host_waits_exist_locked(printer))
        driver.cuStreamWaitEvent(*flush, mark->event, 0);
    else
        driver.cuEventSynchronize(mark->event);
    driver.cuStreamSynchronize(*flush);
}

static void collect_locked(struct server_printf *printer, struct session *owner)
{
    char text[16384];
    size_t size;

    while ((size = driver_output_read(OUTPUT_STDOUT, text, sizeof(text))) > 0) {
        if (!owner)
            log_line("Device printf output of an unknown client: %.*s",
                     size < LOGGED_MAX ? (int)size : LOGGED_MAX, text);
        else if (!backlog_add(&owner->printf->backlog, text, size))
            log_line("Client " CLIENT_FORMAT " does not read its device printf output: %zu "
                     "bytes are lost",
                     CLIENT_ARGS(owner), size);
    }
}

/*
 * Any call that synchronizes or launches may have made the driver write output of its context
 * before: with turns of several clients nobody knows whose that is. What comes now is of the mark's
 * context.
 */
static void flush_and_collect_locked(struct server_printf *printer, const struct printf_mark *mark)
{
    const struct printf_turn *turn = turn_of(printer, mark->device);
    struct session *owner = printf_turns_only_holder_locked(printer);

    if (!owner) {
        collect_locked(printer, NULL);
        owner = turn->shared ? NULL : turn->holder;
    }
    flush_behind_locked(printer, mark);
    collect_locked(printer, owner);
}

/* ---- the thread ---- */

/* Returns the first fatal result. */
static CUresult query_marks_locked(struct server_printf *printer)
{
    list_for_each (struct printf_mark, mark, &printer->marks, link) {
        if (mark->reached || device_enter(mark->device) != CUDA_SUCCESS)
            continue;
        CUresult result = driver.cuEventQuery(mark->event);
        if (cuda_error_is_fatal(result))
            return result;
        mark->reached = result != CUDA_ERROR_NOT_READY;
        if (mark->reached)
            flush_and_collect_locked(printer, mark);
    }
    return CUDA_SUCCESS;
}

static void write_fence(const struct printf_mark *mark)
{
    const struct window *window = mark->session->window;

    if ((int32_t)(fence_value(window, mark->word) - mark->seq) < 0)
        fence_write_now(window, mark->word, mark->seq);
    else
        futex_wake(window_fence(window, mark->word), INT_MAX);
}

/* Writes the fences of a session and ends its marks as far as they are reached: true when some are
 * left. */
static bool settle_marks_locked(struct server_printf *printer, struct session *session,
                                bool delivered)
{
    bool waits = false;

    list_for_each_safe (struct printf_mark, mark, &printer->marks, link) {
        if (mark->session != session)
            continue;
        if (!mark->reached || (mark->seq && !delivered)) {
            waits = true;
            continue;
        }
        if (mark->seq)
            write_fence(mark);
        remove_mark_locked(mark);
    }
    return waits;
}

static void settle_locked(struct server_printf *printer, struct session *session)
{
    struct session_printf *output = session->printf;

    backlog_deliver(&output->backlog, session->channel, OUTPUT_STDOUT);
    bool delivered = backlog_empty(&output->backlog);
    if (settle_marks_locked(printer, session, delivered) || !delivered ||
        printf_turns_hold_locked(printer, session))
        return;
    list_remove(&output->link);
    fences_defer(session, false);
}

static CUresult make_round_locked(struct server_printf *printer)
{
    CUresult result = query_marks_locked(printer);

    collect_locked(printer, printf_turns_only_holder_locked(printer));
    printf_turns_release_locked(printer);
    list_for_each_safe (struct session_printf, output, &printer->active, link)
        settle_locked(printer, output->session);
    return result;
}

/* Polls at growing intervals, until there is new work. */
static void *printf_thread(void *context)
{
    struct server_printf *printer = context;
    uint64_t pause = PAUSE_NS_MIN;

    pthread_mutex_lock(&printer->lock);
    for (;;) {
        while (list_empty(&printer->active) && !printer->stopping) {
            pthread_cond_wait(&printer->work, &printer->lock);
            pause = PAUSE_NS_MIN;
        }
        if (printer->stopping) {
            pthread_mutex_unlock(&printer->lock);
            return NULL;
        }
        CUresult result = make_round_locked(printer);
        if (result != CUDA_SUCCESS) {
            pthread_mutex_unlock(&printer->lock);
            printer->server->on_fatal(printer->server, NULL, result);
            return NULL;
        }
        uint64_t before = clock_ns();
        printf_wait_locked(printer, &printer->work, pause);
        bool called = clock_ns() - before < pause;
        pause = called ? PAUSE_NS_MIN : pause < PAUSE_NS_MAX ? pause + pause / 4 : pause;
    }
}

static bool start_locked(struct server_printf *printer)
{
    pthread_condattr_t attributes;

    if (printer->started)
        return true;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&printer->work, &attributes);
    pthread_cond_init(&printer->turn_free, &attributes);
    pthread_condattr_destroy(&attributes);
    printer->started = pthread_create(&printer->thread, NULL, printf_thread, printer) == 0;
    return printer->started;
}

/* ---- what workers ask for ---- */

static struct printf_mark *mark_create(struct stream *stream, uint32_t seq)
{
    struct printf_mark *mark = calloc(1, sizeof(*mark));

    if (!mark)
        return NULL;
    *mark = (struct printf_mark){.session = stream->session,
                                 .device = stream->device,
                                 .stream = stream,
                                 .word = stream->word,
                                 .seq = seq,
                                 .may_be_blocked = host_waits_exist(stream->session)};
    if (spare_event_take(mark->device, &mark->event) != CUDA_SUCCESS) {
        free(mark);
        return NULL;
    }
    if (driver.cuEventRecord(mark->event, stream->driver) != CUDA_SUCCESS) {
        spare_event_keep(mark->device, mark->event);
        free(mark);
        return NULL;
    }
    return mark;
}

/* A mark behind later launches of a stream stands for the earlier ones, too. */
static void replace_launch_mark_locked(struct server_printf *printer, struct printf_mark *later)
{
    list_for_each_safe (struct printf_mark, mark, &printer->marks, link) {
        if (mark->stream == later->stream && !mark->seq)
            remove_mark_locked(mark);
    }
}

CUresult device_printf_begin(struct stream *stream)
{
    struct session *session = stream->session;
    struct server_printf *printer = session->server->printf;
    struct printf_turn *turn = turn_of(printer, stream->device);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    if (!start_locked(printer))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = printf_turn_take_locked(printer, turn, session);
    if (result != CUDA_SUCCESS)
        return result;
    activate_locked(printer, session);
    turn->launching++;
    return CUDA_SUCCESS;
}

void device_printf_end(struct stream *stream)
{
    struct server_printf *printer = stream->session->server->printf;
    struct printf_mark *mark = mark_create(stream, 0);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    turn_of(printer, stream->device)->launching--;
    if (!mark)
        return;
    activate_locked(printer, stream->session);
    replace_launch_mark_locked(printer, mark);
    list_append(&printer->marks, &mark->link);
    pthread_cond_signal(&printer->work);
}

/* Has the fence written once the work before it is done and its output handed over. */
static bool write_deferred_fence(struct stream *stream, uint32_t seq)
{
    struct server_printf *printer = stream->session->server->printf;
    struct printf_mark *mark = mark_create(stream, seq);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    if (!mark)
        return false;
    activate_locked(printer, stream->session);
    list_append(&printer->marks, &mark->link);
    pthread_cond_signal(&printer->work);
    return true;
}

static void on_stream_closing(struct stream *stream)
{
    struct server_printf *printer = stream->session->server->printf;

    if (!fences_are_deferred(stream->session))
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    list_for_each (struct printf_mark, mark, &printer->marks, link) {
        if (mark->stream == stream)
            mark->stream = NULL;
    }
}

static void remove_marks_locked(struct server_printf *printer, const struct session *session)
{
    list_for_each_safe (struct printf_mark, mark, &printer->marks, link) {
        if (mark->session == session)
            remove_mark_locked(mark);
    }
}

/* A last round brings in what its kernels printed, so that it is not taken for another client's. */
void device_printf_forget(struct session *session)
{
    struct server_printf *printer = session->server->printf;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    if (!fences_are_deferred(session)) {
        printf_turns_forget_locked(printer, session);
        return;
    }
    make_round_locked(printer);
    session->current = NULL; /* the round was in contexts of its own choice */
    remove_marks_locked(printer, session);
    printf_turns_forget_locked(printer, session);
    printf_turns_release_locked(printer);
    if (fences_are_deferred(session))
        list_remove(&session->printf->link);
    fences_defer(session, false);
    backlog_drop(&session->printf->backlog);
}

/* The lock is kept, so that no client prints any more. */
void device_printf_fault(struct server *server)
{
    struct server_printf *printer = server->printf;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAULT_TIMEOUT_S;
    if (pthread_mutex_timedlock(&printer->lock, &until))
        return;
    collect_locked(printer, printf_turns_only_holder_locked(printer));
    list_for_each (struct session_printf, output, &printer->active, link)
        backlog_deliver(&output->backlog, output->session->channel, OUTPUT_STDOUT);
}
