/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that kernels print, on its way to the client whose kernels they are. A driver keeps one
 * buffer for the whole context and does not say who filled it, so clients whose kernels may print
 * take turns; the others pay one look at a flag.
 */
#pragma once

#include "server.h"
#include "session.h"

struct stream;

/* Around the launch of a kernel that may print. The first may wait for other clients' kernels, for
 * some seconds at most; an error means that there is to be no launch, and no second call. */
CUresult device_printf_begin(struct session *session);
void device_printf_end(struct stream *stream);

/* The session's streams are at rest and it is about to end. */
void device_printf_forget(struct session *session);

/* The context is lost: what was printed before goes to the client that had the turn. The caller
 * holds the server's lock and is about to end the process. */
void device_printf_fault(struct server *server);

/* The part of the server, whose streams are there, and of a session. 0 or -ENOMEM. */
int server_printf_init(struct server *server);
void server_printf_fini(struct server *server);
int session_printf_init(struct session *session);
void session_printf_fini(struct session *session);
