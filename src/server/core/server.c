/* SPDX-License-Identifier: Apache-2.0 */
/* What every subsystem needs of the server. */
#include "server.h"

#include "cleanup.h"

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
