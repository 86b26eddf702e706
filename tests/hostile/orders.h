/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders of a played daemon to suspend or move a client, and what the server answers. A witness
 * computes beside the clients.
 */
#pragma once

#include <stdint.h>

#include "played_daemon.h"
#include "witness.h"

#define ORDERS_PID 4711 /* of the client that the orders are for */

/* One in each server. */
extern struct witness orders_witness;

/* A server with two devices, and the witness. */
int orders_setup(void **state);

/* Fails when the witness has seen anything wrong. */
int orders_teardown(void **state);

/* The next that the server says to its daemon; the test fails when that is nothing. */
union server_any orders_next_message(const struct daemon *daemon);

/* The status of the answer to an order. What comes before it is passed over. */
int orders_await_result(const struct daemon *daemon, uint32_t request);

void orders_await_client_end(const struct daemon *daemon, uint32_t id);

/* These return the number of the order. */
uint32_t orders_send_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid);
uint32_t orders_send_move(struct daemon *daemon, uint32_t id, bool withdrawn);
uint32_t orders_send_status(struct daemon *daemon);

/* Sends the order, and returns the status of the answer. */
int orders_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid);

/* A file in memory; the caller closes it. */
int orders_empty_file(void);
