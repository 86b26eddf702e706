/* SPDX-License-Identifier: Apache-2.0 */
/* See lane.h. */
#include "lane.h"

#include <string.h>

#include "clock.h"
#include "journal.h"
#include "lane_move.h"
#include "lane_watch.h"
#include "server_process.h"
#include "text.h"

#define BATCH "batch"

/* Names of services have at most 64 letters. */
_Static_assert(64 + sizeof(":" BATCH "_") + LANE_DOMAIN_MAX - 1 <= SERVER_NAME_MAX,
               "the name of a lane is cut");

void lane_name(const char *service, bool is_batch, const char *domain,
               char ret_name[SERVER_NAME_MAX])
{
    const char *class = is_batch ? BATCH : "";

    text_format(ret_name, SERVER_NAME_MAX, "%.64s%s%s%s%.*s", service,
                is_batch || *domain ? ":" : "", class, is_batch && *domain ? "_" : "",
                LANE_DOMAIN_MAX - 1, domain);
}

void lane_name_other_class(const char *name, bool is_batch, char ret_name[SERVER_NAME_MAX])
{
    char service[SERVER_NAME_MAX];
    const char *domain = name + strcspn(name, ":");

    lane_name_service(name, service);
    domain += *domain == ':';
    if (lane_name_is_batch(name))
        domain += strlen(BATCH);
    domain += *domain == '_' && lane_name_is_batch(name);
    lane_name(service, is_batch, domain, ret_name);
}

void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX])
{
    text_format(ret_service, SERVER_NAME_MAX, "%.*s", (int)strcspn(name, ":"), name);
}

bool lane_name_is_main(const char *name)
{
    return !strchr(name, ':');
}

bool lane_name_is_batch(const char *name)
{
    return text_starts_with(name + strcspn(name, ":"), ":" BATCH);
}

bool lane_name_is_of(const char *name, const char *service)
{
    size_t length = strcspn(name, ":");

    return strlen(service) == length && !strncmp(name, service, length);
}

const char *lane_text(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon ? colon + 1 : "main";
}

struct server_process *lane_find_other(const struct daemon *daemon, const char *service,
                                       const char *name)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (server->role == SERVER_SERVING && !strcmp(server->service, service) &&
            strcmp(server->name, name))
            return server;
    return NULL;
}

void lane_check(struct server_process *server)
{
    bool is_idle =
        server->state == SERVER_ACTIVE && !server->handed_over && !lane_move_is_awaited(server);
    uint64_t now = clock_ns();

    lane_watch_close(server->daemon);
    if (!is_idle || !server->idle_since)
        server->idle_since = now;
    if (!is_idle || server->stopping || server->role != SERVER_SERVING ||
        lane_name_is_main(server->name) || now - server->idle_since < LANE_IDLE_NS)
        return;
    journal("Server %d: its lane, %s, has had no program for %llu seconds; it ends",
            (int)server->pid, lane_text(server->name),
            (unsigned long long)(LANE_IDLE_NS / NS_PER_SEC));
    server_process_stop(server, false);
}
