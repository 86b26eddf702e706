/* SPDX-License-Identifier: Apache-2.0 */
/* The stream subsystem knows which moment is calm; server.h has a function for that. */
#include "calm.h"

#include "cleanup.h"
#include "quiesce.h"
#include "server.h"
#include "session.h"

static bool holds(const struct calm *calm, uint32_t id)
{
    for (unsigned i = 0; i < calm->count; i++) {
        if (calm->held[i] == id)
            return true;
    }
    return false;
}

/* Partner: stay_held() in worker.c. */
void calm_hold(struct calm *calm, struct session *session)
{
    if (calm->count == CALM_HELD_MAX || holds(calm, session->id))
        return;
    calm->held[calm->count++] = session->id;
    atomic_fetch_add_explicit(&session->holders, 1, memory_order_relaxed);
}

void calm_release(struct session *session, struct calm *calm)
{
    if (!calm->count)
        return;
    struct server *server = session->server;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    list_for_each (struct session, other, &server->sessions, link) {
        if (holds(calm, other->id))
            atomic_fetch_sub_explicit(&other->holders, 1, memory_order_relaxed);
    }
    calm->count = 0;
}

CUresult calm_begin(struct session *session, const struct device *device, const char *what,
                    struct calm *calm)
{
    struct server *server = session->server;

    calm->count = 0;
    if (server->await_calm)
        server->await_calm(session, device, calm);
    CUresult result = quiesce_begin(device->quiesce, what);
    if (result != CUDA_SUCCESS)
        calm_release(session, calm);
    return result;
}

CUresult calm_begin_at_once(const struct device *device, const char *what, struct calm *calm)
{
    calm->count = 0;
    return quiesce_begin(device->quiesce, what);
}

void calm_end(struct session *session, const struct device *device, struct calm *calm)
{
    quiesce_end(device->quiesce);
    calm_release(session, calm);
}
