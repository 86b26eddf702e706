/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the load of all clients for each of them, because a client sees no other client.
 *
 * How many clients copy much? A single client's copy is split into small chunks, so that its thread
 * and the GPU work in parallel. Where chunks of other clients fill the gaps, small chunks gain
 * nothing, and each costs some microseconds.
 *
 * Are there enough CPUs? Each busy client and its worker spin while they wait for each other and
 * for the GPU. With more clients than CPUs, spinning threads keep others from running. So all
 * threads spin briefly, and then sleep.
 */
#pragma once

#include "server.h"

/* The watchdog's, in each of its rounds: measures, and tells the clients. */
void copy_load_update(struct server *server);
