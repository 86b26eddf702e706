/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a session, on its own thread: nobody else has to wait for it.
 */
#pragma once

#include "session.h"

/* Waits for the client's work and gives back all it held, except for the window, which goes back
 * when its process is known to be gone. Works at whatever point the session got to. */
void session_clean_up(struct session *session);
