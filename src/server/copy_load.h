/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client cannot see for itself, because it sees no other client.
 *
 * How many clients copy much? A single client's copy is best split into small chunks, so that its
 * thread and the GPU work side by side. Where chunks of other clients fill the gaps, that gains
 * nothing, and every chunk costs some microseconds to start.
 *
 * Are there enough CPUs? Each busy client and its worker spin while they wait for each other and
 * for the GPU. Where there are more clients than CPUs, spinning keeps those from running that are
 * waited for, so all spin only for a short while, and then sleep.
 */
#pragma once

#include "server.h"

/* The watchdog's, in each of its rounds: measures, and tells the clients. */
void copy_load_update(struct server *server);
