/* SPDX-License-Identifier: Apache-2.0 */
/* What every subsystem needs of the server. */
#include "server.h"

#include "cleanup.h"
#include "session.h"

void server_init(struct server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    list_init(&server->sessions);
}

bool server_is_empty(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);

    return list_empty(&server->sessions);
}

struct session *server_session_locked(struct server *server, uint32_t id)
{
    list_for_each (struct session, session, &server->sessions, link) {
        if (session->id == id && session->phase != SESSION_ATTACHING)
            return session;
    }
    return NULL;
}

void server_note_heap_use(struct server *server)
{
    if (server->on_heap_use && !atomic_exchange(&server->heap_used, true))
        server->on_heap_use(server);
}
