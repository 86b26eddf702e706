/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the commands of one client, on the session's own thread.
 */
#pragma once

#include "session.h"

/* Runs until the client has hung up or broken the protocol, or the server ends the session. */
void worker_run(struct session *session);
