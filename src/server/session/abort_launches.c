/* SPDX-License-Identifier: Apache-2.0 */
/* See abort_launches.h. */
#include "abort_launches.h"

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "server.h"
#include "session_life.h"

/* A kernel of a client that has exited may still run for this time. */
#define GRACE_NS NS_PER_SEC

void abort_launches_own(const struct session *session)
{
    if (driver_extension.set_launch_owner)
        driver_extension.set_launch_owner(session->id);
}

/* No session has the number 0. */
bool abort_launches_share_heap(void)
{
    return !driver_extension.forget_launch_owner ||
           driver_extension.forget_launch_owner(0) != CUDA_SUCCESS;
}

/* Kernels may still run in a context that has failed. */
void abort_launches_disown(const struct session *session)
{
    if (driver_extension.forget_launch_owner && !session->server->faulted)
        driver_extension.forget_launch_owner(session->id);
}

static void abort_of_session(const struct session *session)
{
    char kernel[128];

    if (driver_extension.abort_launches(session->id, kernel, sizeof(kernel)) == CUDA_SUCCESS &&
        *kernel)
        session_log_event(session, 0, " is gone, but its kernel %s still ran: it was ended",
                          kernel);
}

static bool is_overdue(struct session *session, uint64_t now)
{
    if (!session->stop || session->phase == SESSION_DONE)
        return false;
    if (!session->life->stop_seen_ns)
        session->life->stop_seen_ns = now;
    return now - session->life->stop_seen_ns >= GRACE_NS;
}

void abort_launches_of_the_gone(struct server *server)
{
    uint64_t now = clock_ns();

    if (!driver_extension.abort_launches)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, session, &server->sessions, link) {
        if (is_overdue(session, now))
            abort_of_session(session);
    }
}
