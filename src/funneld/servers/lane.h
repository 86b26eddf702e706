/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the servers of one service. The main lane serves critical and normal programs, and the
 * batch lane those of class batch. Each domain of fate (isolation.h) has lanes of its own. A lane
 * is a server process like every other, with a name of its own (lane_name.h). So whatever finds a
 * server by its name (programs that wait, replacement, fault drain, takeover) treats lanes as
 * different servers.
 */
#pragma once

struct daemon;
struct server_process;

/* A lane without clients, unless it is the main one, ends after this time. The jobs of a loop in a
 * shell find it still there. */
#define LANE_IDLE_NS (5 * NS_PER_SEC)

/* A serving lane of the service but for that of this name ("" = any), or NULL. */
struct server_process *lane_find_other(const struct daemon *daemon, const char *service,
                                       const char *name);

/* Ends a lane that has had no clients for a while: to be called now and then. */
void lane_check(struct server_process *server);
