/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon.h. */
#include "daemon.h"

#include <unistd.h>

void daemon_init(struct daemon *daemon)
{
    list_init(&daemon->services);
    list_init(&daemon->servers);
    list_init(&daemon->pending_clients);
    list_init(&daemon->draining);
    list_init(&daemon->lane_moves);
    list_init(&daemon->lane_trials);
    list_init(&daemon->departed);
    list_init(&daemon->consoles);
    quotas_init(&daemon->quotas);
    daemon->uid = daemon->server_uid = geteuid();
}
