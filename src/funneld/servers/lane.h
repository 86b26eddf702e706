/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the servers of one service. The main lane serves critical and normal programs, the batch
 * lane those of class batch, and each domain of fate (isolation.h) has lanes of its own. A lane is
 * a server process like every other, with a name of its own: that of the service is the main
 * lane's, and the others have SERVICE:batch, SERVICE:DOMAIN and SERVICE:batch_DOMAIN. No service
 * can have such a name. So whatever finds a server by its name (programs that wait, replacement,
 * fault drain, takeover) treats lanes as different servers.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

struct daemon;
struct server_process;

/* The name of a domain, with NUL. It has letters, digits and _, and never begins with "batch". */
#define LANE_DOMAIN_MAX 56

/* A lane without clients, unless it is the main one, ends after this time. The jobs of a loop in a
 * shell find it still there. */
#define LANE_IDLE_NS (5 * NS_PER_SEC)

/* The name of the service's lane for these programs; `domain` is "" for those in no domain. */
void lane_name(const char *service, bool is_batch, const char *domain,
               char ret_name[SERVER_NAME_MAX]);

/* The lane for batch programs, or for others, in the same domain as that one. */
void lane_name_other_class(const char *name, bool is_batch, char ret_name[SERVER_NAME_MAX]);

/* The service of a server of that name. */
void lane_name_service(const char *name, char ret_service[SERVER_NAME_MAX]);

bool lane_name_is_main(const char *name);

/* Whether it is a lane of batch programs, in a domain or not. */
bool lane_name_is_batch(const char *name);

/* Whether a server of that name is a lane of the service. */
bool lane_name_is_of(const char *name, const char *service);

/* "main", or what follows the name of the service. */
const char *lane_text(const char *name);

/* A serving lane of the service but for that of this name ("" = any), or NULL. */
struct server_process *lane_find_other(const struct daemon *daemon, const char *service,
                                       const char *name);

/* Ends a lane that has had no clients for a while: to be called now and then. */
void lane_check(struct server_process *server);
