/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever has moved so much since the last look is one of the crowd. */
#include "crowd.h"

#include "cleanup.h"

/* In the 20 ms between two looks: a sixtieth of what the way to the GPU can carry. */
#define MUCH (16u << 20)

static bool copies_much(struct session *session)
{
    uint64_t bytes = session->copied_bytes, before = session->copied_bytes_seen;

    session->copied_bytes_seen = bytes;
    return session->phase == SESSION_SERVING && bytes - before >= MUCH;
}

static unsigned count_locked(struct server *server)
{
    unsigned count = 0;

    list_for_each(struct session, session, &server->sessions, link) count += copies_much(session);
    return count;
}

void crowd_look(struct server *server)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&server->lock);
    unsigned count = count_locked(server);

    list_for_each(struct session, session, &server->sessions, link)
    {
        if (session->channel && session->crowd_told != count) {
            channel_server_put_copiers(session->channel, count);
            session->crowd_told = count;
        }
    }
}
