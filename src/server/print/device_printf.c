/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session does about its kernels that may print: it takes the turn before it launches them,
 * and collects their output when its client asks. See printf_turn.c and printf_collect.c.
 */
#include "print_state.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "server_dispatch.h"

#define FAULT_TIMEOUT_S 1

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int server_printf_init(struct server *server)
{
    struct server_printf *printer = calloc(1, sizeof(*printer));

    if (!printer)
        return -ENOMEM;
    pthread_mutex_init(&printer->collecting, NULL);
    pthread_mutex_init(&printer->lock, NULL);
    init_condition(&printer->turn_free);
    server->printf = printer;
    return 0;
}

void server_printf_fini(struct server *server)
{
    free(server->printf);
}

int session_printf_init(struct session *session)
{
    session->printf = calloc(1, sizeof(*session->printf));
    return session->printf ? 0 : -ENOMEM;
}

void session_printf_fini(struct session *session)
{
    free(session->printf);
}

/* ---- launches ---- */

static void set_pending_locked(struct session *session, bool pending)
{
    if (session->printf->pending == pending)
        return;
    session->printf->pending = pending;
    channel_server_set_output_pending(session->channel, pending);
}

/* A client that sees a kernel's fence also sees that its output is pending. */
CUresult device_printf_begin(struct stream *stream)
{
    struct session *session = stream->session;
    struct server_printf *printer = session->server->printf;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);
    CUresult result = printf_turn_take_locked(printer, stream->device, session);

    if (result != CUDA_SUCCESS)
        return result;
    set_pending_locked(session, true);
    print_mark_open(stream);
    atomic_fetch_add_explicit(&printf_turn_of(printer, stream->device)->launching, 1,
                              memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* Partner: is_launching() in printf_turn.c. */
void device_printf_end(const struct stream *stream)
{
    struct server_printf *printer = stream->session->server->printf;

    atomic_fetch_sub_explicit(&printf_turn_of(printer, stream->device)->launching, 1,
                              memory_order_release);
}

/* ---- collecting ---- */

static bool holds_turn(struct server_printf *printer, const struct printf_turn *turn,
                       const struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    return turn->holder == session;
}

static void end_turn_held(struct server_printf *printer, struct printf_turn *turn)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    printf_turn_end_locked(printer, turn);
}

/* Another session may end the turn at the same time. Kernels that are done only now may have
 * printed more, so whether they are is asked first. */
static CUresult collect_in(struct session *session, const struct device *device)
{
    struct server_printf *printer = session->server->printf;
    struct printf_turn *turn = printf_turn_of(printer, device);
    CUresult result = session_visit(session, device);
    bool done = result == CUDA_SUCCESS && print_marks_are_reached(session, device, false);

    if (result != CUDA_SUCCESS)
        return result;
    _cleanup_mutex_ pthread_mutex_t *collecting = mutex_hold(&printer->collecting);
    if (!holds_turn(printer, turn, session))
        return CUDA_SUCCESS;
    result = printf_collect_held(printer, device);
    if (done)
        end_turn_held(printer, turn);
    return result;
}

static void collect_all(struct session *session)
{
    const struct devices *devices = &session->server->devices;
    struct server_printf *printer = session->server->printf;

    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        if (holds_turn(printer, &printer->turns[i], session))
            session_check(session, collect_in(session, &devices->device[i]));
    }
}

/* Whether all has been delivered. The client need not ask again when nothing more can come. */
static bool deliver(struct session *session)
{
    struct server_printf *printer = session->server->printf;
    _cleanup_mutex_ pthread_mutex_t *collecting = mutex_hold(&printer->collecting);
    bool delivered = printf_deliver_held(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    if (delivered && !printf_turns_hold_locked(printer, session))
        set_pending_locked(session, false);
    return delivered;
}

CUresult serve_fnPrintfCollect(struct session *session, const struct wire_fnPrintfCollect *in,
                               struct wire_fnPrintfCollect_reply *ret_out)
{
    if (!in->again)
        collect_all(session);
    ret_out->more = !deliver(session);
    return CUDA_SUCCESS;
}

CUresult serve_fnPrintfTake(struct session *session, const struct wire_fnPrintfTake *in)
{
    collect_all(session);
    deliver(session);
    return CUDA_SUCCESS;
}

bool device_printf_settle(struct session *session)
{
    struct server_printf *printer = session->server->printf;

    collect_all(session);
    deliver(session);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);
    return !printf_turns_hold_locked(printer, session);
}

/* ---- the end ---- */

/* A last collection brings in what its kernels printed, so that it is not taken for another
 * client's. */
void device_printf_forget(struct session *session)
{
    struct server_printf *printer = session->server->printf;

    collect_all(session);
    _cleanup_mutex_ pthread_mutex_t *collecting = mutex_hold(&printer->collecting);
    printf_turns_forget_held(printer, session);
    backlog_drop(&session->printf->backlog);
}

/* The lock is kept, so that no thread collects any more. */
void device_printf_fault(struct server *server)
{
    struct server_printf *printer = server->printf;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAULT_TIMEOUT_S;
    if (pthread_mutex_timedlock(&printer->collecting, &until))
        return;
    printf_collect_strays_held(printer);
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->phase == SESSION_SERVING)
            printf_deliver_held(session);
    }
}
