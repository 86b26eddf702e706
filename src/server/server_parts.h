/* SPDX-License-Identifier: Apache-2.0 */
/* Each subsystem's part of the server. */
#pragma once

#include "server.h"

/* Creates every subsystem's part, for devices that are initialized, as FUNNEL_OFF says: 0 or
 * -ENOMEM. The second undoes it. */
int server_parts_init(struct server *server);
void server_parts_fini(struct server *server);
