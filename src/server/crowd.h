/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many clients are copying much? A copy by itself is best cut into small pieces, so that the
 * client's thread and the GPU work side by side. Where others' pieces fill the gaps, that brings
 * nothing, and every piece costs some microseconds to start. A client sees no other; so it is told.
 */
#pragma once

#include "server.h"

/* Tells them. The watching thread's, some times a second. */
void crowd_look(struct server *server);
