/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the servers of one service. The main lane serves critical and normal programs, and the
 * batch lane those of class batch. A lane is a server process like every other, with a name of its
 * own: that of the service is the main lane's, and NAME:batch the batch lane's. No service can have
 * such a name. So whatever finds a server by its name (programs that wait, replacement, fault
 * drain, takeover) treats lanes as different servers. The server of programs in quarantine is a
 * lane as well, with the name that it has always had (quarantine.h).
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

struct daemon;
struct server_process;

/* A batch lane without clients ends after this time. The jobs of a loop in a shell find it still
 * there. */
#define LANE_IDLE_NS (5 * NS_PER_SEC)

/* The name of the service's batch lane. */
void lane_name_batch(const char *service, char ret_name[SERVER_NAME_MAX]);

/* The service of a server of that name. */
void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX]);

bool lane_name_is_batch(const char *name);

/* Whether a server of that name is a lane of the service. */
bool lane_name_is_of(const char *name, const char *service);

/* "main", "batch" or "quarantine". */
const char *lane_text(const struct server_process *server);

/* A serving server of the same service under another name, or NULL. */
struct server_process *lane_sibling(const struct server_process *server);

/* A serving lane of the service, or NULL. */
struct server_process *lane_find_any(const struct daemon *daemon, const char *service);

/* Ends a batch lane that has had no clients for a while: to be called now and then. */
void lane_check(struct server_process *server);
