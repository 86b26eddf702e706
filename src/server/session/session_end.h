/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session, on its own thread, so that no other thread waits for it. */
#pragma once

#include "session.h"

/* Waits for the client's work and releases all its resources except the window, which is released
 * when the process is gone. It may be called at any point of the session. */
void session_clean_up(struct session *session);
