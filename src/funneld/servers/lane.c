/* SPDX-License-Identifier: Apache-2.0 */
/* See lane.h. */
#include "lane.h"

#include <string.h>

#include "clock.h"
#include "journal.h"
#include "lane_move.h"
#include "lane_name.h"
#include "lane_watch.h"
#include "server_process.h"

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
    bool is_idle = server->state == SERVER_ACTIVE && server->role == SERVER_SERVING &&
                   !server->handed_over && !lane_move_is_awaited(server);
    uint64_t now = clock_ns();

    lane_watch_close(server->daemon);
    lane_moves_follow(server->daemon);
    if (!is_idle || !server->idle_since)
        server->idle_since = now;
    if (!is_idle || server->stopping || lane_name_is_main(server->name) ||
        now - server->idle_since < LANE_IDLE_NS)
        return;
    journal("Server %d: its lane, %s, has had no program for %llu seconds; it ends",
            (int)server->pid, lane_text(server->name),
            (unsigned long long)(LANE_IDLE_NS / NS_PER_SEC));
    server_process_stop(server, false);
}
