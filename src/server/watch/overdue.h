/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a client whose stream waits too long for a value (gate.h). */
#pragma once

#include "server.h"

/* From now on such a client is ended when it blocks a call of another client for longer than
 * QUOTA_WAIT_SECONDS. The server's devices are initialized, and there are no clients yet. */
void overdue_watch(struct server *server);
