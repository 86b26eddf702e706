/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the clients of a server had used when it told of them last: some seconds ago, for those that
 * work. Should the server be killed, that is what the journal of usage has.
 */
#pragma once

#include "server_process.h"

/* The server tells of a client that is still there: CLIENT_USAGE. */
void last_usage_note(struct server_process *server, const struct server_client_gone *usage);

/* The client has gone. */
void last_usage_forget(struct server_process *server, uint32_t id);

/* The server has died: its clients end in the journal. */
void last_usage_close(struct server_process *server);
