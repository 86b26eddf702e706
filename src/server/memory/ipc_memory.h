/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other clients that a session has opened. */
#pragma once

#include "session.h"

/* Closes all of it. The client's work is done, and the thread may be in any context. */
void ipc_memory_close_all(struct session *session);
