/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of a context: at any time kernels of one client may print there. Contexts have turns of
 * their own, because a kernel on one GPU may wait for another client's on another GPU, as those of
 * NCCL do.
 *
 * A client gives its turn back when it synchronizes. Where it does not, another one that wants the
 * turn finds out by itself when the holder's kernels are done (print_mark.h): while another waits,
 * the holder's next kernel that may print waits as well.
 */
#include "print_state.h"

#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "quiesce.h"

/* A kernel may wait for something that only comes later, so its client is not waited for any
 * longer. */
#define TURN_TIMEOUT_NS (5 * NS_PER_SEC)
#define TURN_POLL_NS (10 * NS_PER_MS)

/* How often is asked whether the holder's kernels are done. */
#define PAUSE_NS_MIN (20 * NS_PER_US)
#define PAUSE_NS_MAX (1 * NS_PER_MS)

/* A worker that wants a turn. */
struct turn_request {
    struct server_printf *printer;
    struct printf_turn *turn;
    const struct device *device;
    struct session *session;
    uint64_t deadline;
};

/* The holder as the worker saw it. */
struct turn_grant {
    uint64_t number;
    uint32_t holder; /* session->id */
};

/* The client that had the turn last lets others go first. */
static bool is_free_locked(const struct turn_request *request)
{
    const struct printf_turn *turn = request->turn;
    unsigned others = turn->waiting - 1; /* one of them is the asking worker */

    return !turn->holder && (turn->last != request->session || !others);
}

static bool is_over(const struct turn_request *request)
{
    return request->session->stop || clock_ns() >= request->deadline;
}

static bool is_current_locked(const struct printf_turn *turn, struct turn_grant grant)
{
    return turn->holder && turn->grants == grant.number;
}

static bool is_current(const struct turn_request *request, struct turn_grant grant)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&request->printer->lock);

    return is_current_locked(request->turn, grant);
}

static void take_locked(struct printf_turn *turn, struct session *session)
{
    if (turn->holder == session)
        return;
    turn->holder = session;
    turn->grants++;
}

void printf_turn_end_locked(struct server_printf *printer, struct printf_turn *turn)
{
    turn->last = turn->holder;
    turn->holder = NULL;
    pthread_cond_broadcast(&printer->turn_free);
}

/* ---- while another client has the turn: without the lock ---- */

/* A launch that is being made is not in its stream yet. Partner: device_printf_end(). */
static bool is_launching(const struct printf_turn *turn)
{
    return atomic_load_explicit(&turn->launching, memory_order_acquire) > 0;
}

/* Where no fence tells, events are recorded, behind which the holder launches nothing that may
 * print. */
static bool marks_are_reached(const struct turn_request *request, struct turn_grant grant)
{
    struct server *server = request->session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    const struct session *holder = server_session_locked(server, grant.holder);

    return holder && print_marks_are_reached(holder, request->device, true);
}

/* While a call that waits for all streams is being made the driver is not asked, because that would
 * last as long, and the server's lock is held meanwhile. */
static bool is_done(const struct turn_request *request, struct turn_grant grant)
{
    if (is_launching(request->turn) ||
        session_visit(request->session, request->device) != CUDA_SUCCESS ||
        !quiesce_wait_try(request->device->quiesce))
        return false;
    bool done = marks_are_reached(request, grant);
    quiesce_wait_end(request->device->quiesce);
    return done;
}

static bool await_work(const struct turn_request *request, struct turn_grant grant)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS_MIN};
    bool done;

    while (!(done = is_done(request, grant)) && !is_over(request) && is_current(request, grant)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_NS_MAX)
            pause.tv_nsec *= 2;
    }
    return done;
}

/* Collects for the holder, which has not asked for it, and ends its turn. */
static CUresult end_turn_of_holder(const struct turn_request *request, struct turn_grant grant)
{
    struct server_printf *printer = request->printer;
    _cleanup_mutex_ pthread_mutex_t *collecting = mutex_hold(&printer->collecting);

    if (!is_current(request, grant))
        return CUDA_SUCCESS;
    CUresult result = printf_collect_held(printer, request->device);
    printf_deliver_held(request->turn->holder);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);
    printf_turn_end_locked(printer, request->turn);
    return result;
}

/* The work of the holder that is not done by now is noted down: while there is some, the output is
 * neither client's. */
static void take_away_held(const struct turn_request *request, struct stream_probe *work)
{
    struct printf_turn *turn = request->turn;

    log_line("Client " CLIENT_FORMAT " prints although the kernels of " CLIENT_FORMAT
             " that may print are not done: the output of both goes to this log until they are",
             CLIENT_ARGS(request->session), CLIENT_ARGS(turn->holder));
    stream_probe_join(&turn->late, work);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&request->printer->lock);
    printf_turn_end_locked(request->printer, turn);
    take_locked(turn, request->session);
}

/* Nothing while a call that waits for all streams goes on: see is_done(). */
static void take_away(const struct turn_request *request, struct turn_grant grant)
{
    struct stream_probe work;

    if (!quiesce_wait_try_for(request->device->quiesce, TURN_POLL_NS))
        return;
    stream_probe_begin_printing(&work, request->session, request->device, grant.holder);
    quiesce_wait_end(request->device->quiesce);
    pthread_mutex_lock(&request->printer->collecting);
    if (is_current(request, grant))
        take_away_held(request, &work);
    pthread_mutex_unlock(&request->printer->collecting);
    stream_probe_end(&work);
}

/* ---- waiting ---- */

static void wait_locked(struct server_printf *printer)
{
    uint64_t until = clock_ns() + TURN_POLL_NS;
    struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SEC),
                          .tv_nsec = (long)(until % NS_PER_SEC)};

    pthread_cond_timedwait(&printer->turn_free, &printer->lock, &at);
}

static struct turn_grant grant_of(const struct printf_turn *turn)
{
    return (struct turn_grant){.number = turn->grants, .holder = turn->holder->id};
}

/* One of those that wait does this, the others sleep. */
static void watch_holder_locked(const struct turn_request *request)
{
    struct server_printf *printer = request->printer;
    struct turn_grant grant = grant_of(request->turn);
    CUresult result = CUDA_SUCCESS;

    request->turn->watched = true;
    pthread_mutex_unlock(&printer->lock);
    if (await_work(request, grant))
        result = end_turn_of_holder(request, grant);
    session_check(request->session, result);
    pthread_mutex_lock(&printer->lock);
    request->turn->watched = false;
    pthread_cond_broadcast(&printer->turn_free);
}

static void take_away_locked(const struct turn_request *request)
{
    struct turn_grant grant = grant_of(request->turn);

    pthread_mutex_unlock(&request->printer->lock);
    take_away(request, grant);
    pthread_mutex_lock(&request->printer->lock);
}

static void await_turn_locked(const struct turn_request *request)
{
    struct printf_turn *turn = request->turn;

    turn->waiting++;
    while (!is_free_locked(request) && !is_over(request)) {
        if (turn->holder && !turn->watched)
            watch_holder_locked(request);
        else
            wait_locked(request->printer);
    }
    while (turn->holder && turn->holder != request->session && !request->session->stop)
        take_away_locked(request);
    turn->waiting--;
    pthread_cond_broadcast(&request->printer->turn_free);
}

CUresult printf_turn_take_locked(struct server_printf *printer, const struct device *device,
                                 struct session *session)
{
    struct printf_turn *turn = printf_turn_of(printer, device);

    if (turn->holder != session || turn->waiting) {
        const struct turn_request request = {printer, turn, device, session,
                                             clock_ns() + TURN_TIMEOUT_NS};
        await_turn_locked(&request);
    }
    if (session->stop)
        return CUDA_ERROR_MPS_CLIENT_TERMINATED;
    take_locked(turn, session);
    return CUDA_SUCCESS;
}

bool printf_turns_hold_locked(const struct server_printf *printer, const struct session *session)
{
    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        if (printer->turns[i].holder == session)
            return true;
    }
    return false;
}

void printf_turns_forget_held(struct server_printf *printer, const struct session *session)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&printer->lock);

    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        if (printer->turns[i].holder == session)
            printf_turn_end_locked(printer, &printer->turns[i]);
        if (printer->turns[i].last == session)
            printer->turns[i].last = NULL;
    }
}
