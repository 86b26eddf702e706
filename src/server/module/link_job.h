/* SPDX-License-Identifier: Apache-2.0 */
/* Linking jobs of clients, each a job of the driver. All functions are the session thread's. */
#pragma once

#include "session.h"

struct link;

/* Ends a job that is not in the handle table any more. NULL is allowed. */
void link_destroy(struct session *session, struct link *link);
