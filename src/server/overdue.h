/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a client whose stream waits for a value that does not come (quiesce.h). */
#pragma once

#include "server.h"

/* From now on such a client is ended when it keeps a call of another client away for longer than
 * QUOTA_WAIT_SECONDS. The server's devices are initialized, and there are no clients yet. */
void overdue_watch(struct server *server);
