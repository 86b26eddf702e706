/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of a context: at any time kernels of one client may print there, or of several after a
 * timeout, and then the owner of the output is not known. Contexts have turns of their own, because
 * a kernel on one GPU may wait for another client's on another GPU, as those of NCCL do.
 */
#include "print_state.h"

#include <time.h>

#include "clock.h"
#include "log.h"

#define TURN_TIMEOUT_NS (5 * NS_PER_SEC)
#define TURN_POLL_NS (10 * NS_PER_MS)

void printf_wait_locked(struct server_printf *printer, pthread_cond_t *condition,
                        uint64_t timeout_ns)
{
    uint64_t until = clock_ns() + timeout_ns;
    struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SEC),
                          .tv_nsec = (long)(until % NS_PER_SEC)};

    pthread_cond_timedwait(condition, &printer->lock, &at);
}

static bool launches_pending_locked(struct server_printf *printer, const struct printf_turn *turn)
{
    if (turn->launching)
        return true;
    list_for_each (struct printf_mark, mark, &printer->marks, link) {
        if (&printer->turns[mark->device->index] == turn && !mark->seq && !mark->reached)
            return true;
    }
    return false;
}

static void release_locked(struct server_printf *printer, struct printf_turn *turn)
{
    if ((!turn->holder && !turn->shared) || launches_pending_locked(printer, turn))
        return;
    turn->last = turn->holder;
    turn->holder = NULL;
    turn->shared = false;
    pthread_cond_broadcast(&printer->turn_free);
}

void printf_turns_release_locked(struct server_printf *printer)
{
    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++)
        release_locked(printer, &printer->turns[i]);
}

bool printf_turns_hold_locked(const struct server_printf *printer, const struct session *session)
{
    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        if (printer->turns[i].holder == session)
            return true;
    }
    return false;
}

void printf_turns_forget_locked(struct server_printf *printer, const struct session *session)
{
    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        if (printer->turns[i].holder == session)
            printer->turns[i].holder = NULL;
        if (printer->turns[i].last == session)
            printer->turns[i].last = NULL;
    }
}

struct session *printf_turns_only_holder_locked(const struct server_printf *printer)
{
    struct session *only = NULL;

    for (unsigned i = 0; i < DEVICE_CONTEXTS_MAX; i++) {
        const struct printf_turn *turn = &printer->turns[i];

        if (turn->shared || (turn->holder && only && turn->holder != only))
            return NULL;
        if (turn->holder)
            only = turn->holder;
    }
    return only;
}

/* The client that had the turn last lets others go first. */
static bool turn_is_free_locked(const struct printf_turn *turn, const struct session *session)
{
    unsigned others = turn->waiting - 1; /* one of them is the asking worker */

    if (turn->shared)
        return true;
    return !turn->holder && (turn->last != session || !others);
}

static void share_turn_locked(struct server_printf *printer, struct printf_turn *turn,
                              const struct session *session)
{
    log_line("Client " CLIENT_FORMAT " prints although the kernels of " CLIENT_FORMAT
             " that may print are not done: the output of both goes to this log until they are",
             CLIENT_ARGS(session), CLIENT_ARGS(turn->holder));
    turn->shared = true;
    pthread_cond_broadcast(&printer->turn_free);
}

static void await_turn_locked(struct server_printf *printer, struct printf_turn *turn,
                              struct session *session)
{
    uint64_t deadline = clock_ns() + TURN_TIMEOUT_NS;

    turn->waiting++;
    pthread_cond_signal(&printer->work);
    while (!turn_is_free_locked(turn, session) && !session->stop && clock_ns() < deadline)
        printf_wait_locked(printer, &printer->turn_free, TURN_POLL_NS);
    if (!turn_is_free_locked(turn, session) && !session->stop && turn->holder)
        share_turn_locked(printer, turn, session);
    turn->waiting--;
    pthread_cond_broadcast(&printer->turn_free);
}

CUresult printf_turn_take_locked(struct server_printf *printer, struct printf_turn *turn,
                                 struct session *session)
{
    bool mine = turn->holder == session && !turn->waiting;

    if (!mine)
        await_turn_locked(printer, turn, session);
    if (session->stop)
        return CUDA_ERROR_MPS_CLIENT_TERMINATED;
    if (!turn->holder)
        turn->holder = session;
    return CUDA_SUCCESS;
}
