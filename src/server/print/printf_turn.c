/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn: at any time kernels of one client may print, or of several after a timeout, and then
 * the owner of the output is not known.
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

static bool launches_pending_locked(struct server_printf *printer)
{
    if (printer->launching)
        return true;
    list_for_each (struct printf_mark, mark, &printer->marks, link) {
        if (!mark->seq && !mark->reached)
            return true;
    }
    return false;
}

void printf_turn_release_locked(struct server_printf *printer)
{
    if ((!printer->holder && !printer->shared) || launches_pending_locked(printer))
        return;
    printer->last = printer->holder;
    printer->holder = NULL;
    printer->shared = false;
    pthread_cond_broadcast(&printer->turn_free);
}

/* The client that had the turn last lets others go first. */
static bool turn_is_free_locked(struct server_printf *printer, const struct session *session)
{
    unsigned others = printer->waiting - 1; /* one of them is the asking worker */

    if (printer->shared)
        return true;
    return !printer->holder && (printer->last != session || !others);
}

static void share_turn_locked(struct server_printf *printer, const struct session *session)
{
    log_line("Client " CLIENT_FORMAT " prints although the kernels of " CLIENT_FORMAT
             " that may print are not done: the output of both goes to this log until they are",
             CLIENT_ARGS(session), CLIENT_ARGS(printer->holder));
    printer->shared = true;
    pthread_cond_broadcast(&printer->turn_free);
}

static void await_turn_locked(struct server_printf *printer, struct session *session)
{
    uint64_t deadline = clock_ns() + TURN_TIMEOUT_NS;

    printer->waiting++;
    pthread_cond_signal(&printer->work);
    while (!turn_is_free_locked(printer, session) && !session->stop && clock_ns() < deadline)
        printf_wait_locked(printer, &printer->turn_free, TURN_POLL_NS);
    if (!turn_is_free_locked(printer, session) && !session->stop && printer->holder)
        share_turn_locked(printer, session);
    printer->waiting--;
    pthread_cond_broadcast(&printer->turn_free);
}

CUresult printf_turn_take_locked(struct server_printf *printer, struct session *session)
{
    bool mine = printer->holder == session && !printer->waiting;

    if (!mine)
        await_turn_locked(printer, session);
    if (session->stop)
        return CUDA_ERROR_MPS_CLIENT_TERMINATED;
    if (!printer->holder)
        printer->holder = session;
    return CUDA_SUCCESS;
}
