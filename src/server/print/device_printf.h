/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output, on its way to the client whose kernels printed it. A driver keeps one
 * buffer for each context and does not say which kernel filled it, so clients whose kernels may
 * print in a context take turns. Nothing else is done for a launch: the client asks for the output
 * when it synchronizes, if its region says that there may be some.
 */
#pragma once

#include "server.h"
#include "session.h"

struct stream;

/* Session thread: around the launch of kernels that may print, after stream_begin_work(). The first
 * may wait some seconds for other clients' kernels. CUDA_ERROR_MPS_CLIENT_TERMINATED means that
 * there is to be no launch, and no second call. */
CUresult device_printf_begin(struct stream *stream);
void device_printf_end(const struct stream *stream);

/* Session thread: collects what the client's kernels have printed, and gives the turns back in all
 * contexts where they are done: whether it has none any more. */
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
