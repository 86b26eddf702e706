/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replacement of a server that ends without an order, because of a fault, a signal or the stall
 * timeout. It is its standby, or a new server. Neither waits until the process of the old one has
 * gone, because its driver takes some tenths of a second to clean up.
 */
#pragma once

#include <stdbool.h>

struct server_process;

/* Whether a new server would have clients soon: those of the old one that can move. */
bool replacement_is_wanted(const struct server_process *server);

/* Another server serves under the name of this one and with its limits from now on, or when it is
 * ready. It is the standby, or a new one if one is wanted. False if none does; the server, if it is
 * serving, still stands for its name then. */
bool replacement_find(struct server_process *server, bool wanted);

/* Whether another server is starting under the name of this one. */
bool replacement_is_coming(const struct server_process *server);

/* The server serves, or nothing will under its name for now. Those before it that have faulted need
 * not wait any more until it is ready, and have the time to end from now on. */
void replacement_end_old(const struct server_process *server);
