/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the commands of one client, on the session's own thread.
 */
#pragma once

#include "session.h"

/* Until the client has hung up, has broken the protocol, or the server wants it to end. */
void worker_run(struct session *session);

/* Looks at a result of the driver: one that means that the context is lost ends the server. */
void worker_check(struct session *session, CUresult result);
