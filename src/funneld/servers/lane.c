/* SPDX-License-Identifier: Apache-2.0 */
/* See lane.h. */
#include "lane.h"

#include <string.h>

#include "clock.h"
#include "journal.h"
#include "quarantine.h"
#include "server_process.h"
#include "text.h"

#define SUFFIX ":batch"

/* Names of services have at most 64 letters. */
_Static_assert(64 + sizeof(SUFFIX) <= SERVER_NAME_MAX, "the name of a batch lane is cut");

void lane_name_batch(const char *service, char ret_name[SERVER_NAME_MAX])
{
    text_format(ret_name, SERVER_NAME_MAX, "%.64s" SUFFIX, service);
}

void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX])
{
    text_format(ret_service, SERVER_NAME_MAX, "%.*s", (int)strcspn(name, ":"), name);
}

bool lane_name_is_batch(const char *name)
{
    return strchr(name, ':') != NULL;
}

bool lane_name_is_of(const char *name, const char *service)
{
    size_t length = strcspn(name, ":");

    return strlen(service) == length && !strncmp(name, service, length);
}

const char *lane_text(const struct server_process *server)
{
    if (lane_name_is_batch(server->name))
        return "batch";
    return quarantine_owns(server) ? "quarantine" : "main";
}

struct server_process *lane_sibling(const struct server_process *server)
{
    list_for_each (struct server_process, other, &server->daemon->servers, link)
        if (other->role == SERVER_SERVING && !strcmp(other->service, server->service) &&
            strcmp(other->name, server->name))
            return other;
    return NULL;
}

struct server_process *lane_find_any(const struct daemon *daemon, const char *service)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->role == SERVER_SERVING && !strcmp(server->service, service))
            return server;
    return NULL;
}

void lane_check(struct server_process *server)
{
    bool is_idle = server->state == SERVER_ACTIVE && !server->handed_over;
    uint64_t now = clock_ns();

    if (!is_idle || !server->idle_since)
        server->idle_since = now;
    if (!is_idle || server->stopping || server->role != SERVER_SERVING ||
        !lane_name_is_batch(server->name) || now - server->idle_since < LANE_IDLE_NS)
        return;
    journal("Server %d: no batch program has run for %llu seconds; it ends", (int)server->pid,
            (unsigned long long)(LANE_IDLE_NS / NS_PER_SEC));
    server_process_stop(server, false);
}
