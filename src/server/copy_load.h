/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client can not see for itself, because it sees no other.
 *
 * How many are copying much? A copy by itself is best cut into small pieces, so that the client's
 * thread and the GPU work side by side. Where others' pieces fill the gaps, that brings nothing,
 * and every piece costs some microseconds to start.
 *
 * Are there CPUs enough? Each client at work and its worker look on while they wait for each other
 * and for the GPU. Where the clients alone are more than the CPUs, they keep from running those
 * whom they wait for, so all look on for a moment only, and then sleep.
 */
#pragma once

#include "server.h"

/* Tells them. The watching thread's, some times a second. */
void copy_load_update(struct server *server);
