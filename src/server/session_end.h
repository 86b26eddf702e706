/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session, on its own thread, so that no other thread has to wait for it. */
#pragma once

#include "session.h"

/* Waits for the client's work and gives back all that it held, except for the window, which goes
 * back when its process is known to be gone. It may be called at any point of the session. */
void session_clean_up(struct session *session);
