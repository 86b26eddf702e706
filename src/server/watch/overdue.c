/* SPDX-License-Identifier: Apache-2.0 */
/* See overdue.h. */
#include "overdue.h"

#include "cleanup.h"
#include "gate.h"
#include "log.h"
#include "session_life.h"

static struct session *find_locked(const struct server *server, uint32_t id)
{
    list_for_each (struct session, session, &server->sessions, link)
        if (session->id == id)
            return session;
    return NULL;
}

/* Runs on the thread of a client that waits with its call, or on a thread of the server. A client
 * that was already ended only needs some time. */
static bool end_client(void *context, uint32_t id)
{
    struct server *server = context;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    struct session *session = find_locked(server, id);

    if (!session || session->stop)
        return true;
    if (pthread_equal(session->life->thread, pthread_self()))
        return false;
    session_log_event(session, CUDA_ERROR_MPS_CLIENT_TERMINATED,
                      " is ended: a stream of it has waited for a value or callback "
                      "for more than %llu s (wait-seconds), and blocks a call of another client",
                      (unsigned long long)quota(QUOTA_WAIT_SECONDS));
    session_end_locked(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    return true;
}

void overdue_watch(struct server *server)
{
    for (unsigned i = 0; i < server->devices.count; i++)
        gate_set_overdue(server->devices.device[i].gate, end_client, server);
}
