/* SPDX-License-Identifier: Apache-2.0 */
/* The module subsystem's part of the server and of a session. */
#include "module_state.h"

#include <errno.h>
#include <stdlib.h>

#include "memory.h"

static bool reclaim(struct session *session, const struct device *device)
{
    (void)device;
    return module_cache_give_way(server_module_cache(session->server));
}

int server_modules_init(struct server *server, bool keeps_libraries)
{
    server->modules = calloc(1, sizeof(*server->modules));
    if (!server->modules)
        return -ENOMEM;
    module_cache_init(&server->modules->cache, server->devices.gate, keeps_libraries);
    list_init(&server->modules->observers);
    memory_add_reclaimer(server, reclaim);
    return 0;
}

void server_modules_fini(struct server *server)
{
    module_cache_fini(&server->modules->cache);
    free(server->modules);
}

void server_modules_observe(struct server *server, struct module_observer *observer)
{
    list_append(&server->modules->observers, &observer->link);
}

struct module_cache *server_module_cache(struct server *server)
{
    return &server->modules->cache;
}

int session_modules_init(struct session *session)
{
    session->modules = calloc(1, sizeof(*session->modules));
    if (!session->modules)
        return -ENOMEM;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        list_init(&session->modules->parked[i]);
    return 0;
}

void session_modules_fini(struct session *session)
{
    free(session->modules);
}
