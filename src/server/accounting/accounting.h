/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each client has used: how long it had kernels on a device, how many multiprocessors they
 * took, how long its commands waited.
 *
 * Nothing is recorded where launches are made, except a count and the grid of the last kernel. A
 * thread looks at all clients some five hundred times a second: a stream whose fence has not been
 * written is busy. Times are sums over these samples, so they are exact to a few milliseconds, or
 * to a few percent where kernels are shorter than the time between two samples.
 */
#pragma once

#include <stdint.h>

#include "server.h"
#include "session.h"

/* Starts the thread: 0 or -errno. All parts of the server are initialized. */
int accounting_start(struct server *server);

/* The part of a session. 0 or -ENOMEM. */
int session_accounting_init(struct session *session);
void session_accounting_fini(struct session *session);

/* From any thread: what the client has used so far. */
void accounting_usage(const struct session *session, struct server_usage *ret_usage);

/* The main thread: the client has been in a call for `ms` more because of `offender`, which is in
 * `call`; `begins` when it was not so before. */
void accounting_stalled(struct session *session, const struct session *offender, const char *call,
                        uint64_t ms, bool begins);
