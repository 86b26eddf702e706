/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one command of a client, on the thread that serves the session: its own or one of the pool.
 */
#pragma once

#include "launch_batch.h"
#include "server_dispatch.h"
#include "session.h"

/* The client has broken the protocol. `message` is the command, or NULL. */
void run_message_end_client(struct session *session, const char *what,
                            const struct ring_message *message);

/* These commands submit the pending launch batch themselves. */
static inline bool handles_batch_itself(uint32_t op)
{
    return op == WIRE_cuLaunchKernelEx || op == WIRE_fnFence || op == WIRE_fnMemset;
}

/* `size` is that of the message, or the error of the ring. */
static inline void run_message(struct session *session, int size,
                               const struct ring_message *message)
{
    if (size < 0 || !handles_batch_itself(channel_kind_op(message->kind)))
        launch_batch_flush(session);
    session->since_error++;
    if (size < 0)
        run_message_end_client(session, "the ring is corrupt", NULL);
    else if (!server_dispatch(session, message))
        run_message_end_client(session, "malformed command", message);
}
