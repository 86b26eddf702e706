/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers device printf output to the client whose kernels printed it. A driver has one buffer for
 * each context and does not report which kernel wrote a record, so the server matches formats
 * (printf_collect.c). A launch does nothing else: the client requests output when it synchronizes,
 * if a word of its region says that there may be some.
 */
#pragma once

#include "print_formats.h"
#include "server.h"
#include "session.h"

/* Session thread: before a launch of kernels that may print there, after stream_begin_work().
 * `formats` are those of their library; NULL = unknown. Waits for no other client. Their stream
 * is told by print_checkpoint_open(). */
void device_printf_begin(struct session *session, const struct device *device,
                         struct print_formats *formats);

/* Session thread: collects the output of the client's kernels. Returns whether they are done in all
 * contexts, so that no more output can come. */
bool device_printf_settle(struct session *session);

/* Session thread: the session's streams are idle and it is about to end. */
void device_printf_forget(struct session *session);

/* The context is lost: delivers earlier output to the clients that printed it. The caller holds the
 * server's lock and is about to end the process. */
void device_printf_fault(struct server *server);

/* The part of the server, and of a session. 0 or -ENOMEM. */
int server_printf_init(struct server *server);
void server_printf_fini(struct server *server);
int session_printf_init(struct session *session);
void session_printf_fini(struct session *session);
