/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage of each client: how long its kernels ran on a device, how many multiprocessors they
 * took, how long its commands waited.
 *
 * A launch only records a count and the grid of its kernel. A thread samples all clients some five
 * hundred times a second: a stream whose fence has not been written is busy. Times are sums over
 * the samples. They are exact to a few milliseconds, or to a few percent for kernels that are
 * shorter than the sampling period.
 */
#pragma once

#include <stdint.h>

#include "server.h"
#include "session.h"

/* Of all clients together. 0 or -ENOMEM. */
int server_accounting_init(struct server *server);
void server_accounting_fini(struct server *server);

/* Starts the thread: 0 or -errno. All parts of the server are initialized. */
int accounting_start(struct server *server);

/* The part of a session. 0 or -ENOMEM. */
int session_accounting_init(struct session *session);
void session_accounting_fini(struct session *session);

/* The main thread: how many percent of the time since the last call clients had kernels on the
 * device that had them for longest. */
uint32_t accounting_kernels_percent(struct server *server);

/* From any thread: for how long several clients have had kernels at the same time on a device. */
uint64_t accounting_shared_ns(const struct server *server);

/* From any thread: what the client has used so far. */
void accounting_usage(const struct session *session, struct server_usage *ret_usage);

/* The main thread: the client has waited in a call for `ms` more because `offender` is in `call`.
 * `begins`: the client did not wait before. */
void accounting_stalled(struct session *session, const struct session *offender, const char *call,
                        uint64_t ms, bool begins);

/* The session's thread: the client's memory has left its devices for another client; so many bytes
 * have left, or come back, for whatever reason. */
void accounting_note_eviction(struct session *session);
void accounting_note_swapped_out(struct session *session, uint64_t bytes);
void accounting_note_swapped_in(struct session *session, uint64_t bytes);
