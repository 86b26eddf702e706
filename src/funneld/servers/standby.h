/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standby servers: processes whose driver is initialized and whose contexts stand, without clients.
 * With --spare the daemon keeps one beside the main lane of each service. When that ends without an
 * order, by a fault, a signal or the stall timeout, its standby takes its place. So programs that
 * move find a server that is ready. The standby also becomes the spare lane (spare_lane.h) or the
 * batch lane when one is needed. The daemon starts another standby some time later. No list shows a
 * standby among the servers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct server_process;
struct server_route;

/* The serving server is ready: it gets a standby, unless it is to have none. */
void standby_begin(struct server_process *server);

/* The ready standby of the service's main lane becomes the spare lane or the batch lane of that
 * route. NULL when it is another route, or there is none. The main lane gets another standby. */
struct server_process *standby_become_lane(const struct daemon *daemon,
                                           const struct server_route *route);

/* If the server has not been dismissed and has a living standby, that one serves from now on under
 * its name and with its limits. The server has then been replaced (replacement.h). */
bool standby_take_over(struct server_process *server);

/* The server has been dismissed, or has gone: its standby, if any, ends. */
void standby_dismiss(const struct server_process *server);

/* The process of a standby has ended, and its record is about to be freed. */
void standby_ended(const struct server_process *standby);

/* The one that stands by for the server, ready or still starting, or NULL. */
struct server_process *standby_of(const struct server_process *server);

/* How much memory it takes of the device where it takes most, in MiB: as much as the contexts of
 * the serving server. */
uint32_t standby_memory_mib(const struct server_process *server);

/* The first device on which another server would take too much memory, by what this one takes of
 * it; -1 = there is none. */
int standby_small_device(const struct server_process *server);
