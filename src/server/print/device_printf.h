/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the client whose kernels printed it. A driver keeps one
 * buffer for each context and does not say which kernel filled it, so the server finds out by the
 * formats (printf_collect.c). Nothing else is done for a launch: the client asks for the output
 * when it synchronizes, if its region says that there may be some.
 */
#pragma once

#include "print_formats.h"
#include "server.h"
#include "session.h"

struct stream;

/* Session thread: before the launch of kernels that may print, after stream_begin_work(). `formats`
 * are those of their library; NULL = unknown. Waits for no other client. */
void device_printf_begin(struct stream *stream, struct print_formats *formats);

/* Session thread: collects what the client's kernels have printed: whether they are done in all
 * contexts, so that nothing more can come. */
bool device_printf_settle(struct session *session);

/* Session thread: the session's streams are idle and it is about to end. */
void device_printf_forget(struct session *session);

/* The context is lost: what was printed before is delivered to the clients that printed it. The
 * caller holds the server's lock and is about to end the process. */
void device_printf_fault(struct server *server);

/* The part of the server, and of a session. 0 or -ENOMEM. */
int server_printf_init(struct server *server);
void server_printf_fini(struct server *server);
int session_printf_init(struct session *session);
void session_printf_fini(struct session *session);
