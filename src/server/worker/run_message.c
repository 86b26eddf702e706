/* SPDX-License-Identifier: Apache-2.0 */
/* See run_message.h. */
#include "run_message.h"

#include "session_life.h"

void run_message_end_client(struct session *session, const char *what,
                            const struct ring_message *message)
{
    const char *name = message ? wire_op_name(channel_kind_op(message->kind)) : NULL;

    session_log_error(session, "%s (%s), ending this client", what, name ? name : "no command");
    session->life->distrusted = true;
    session_fail(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
    session_stop(session, CUDA_ERROR_MPS_CLIENT_TERMINATED);
}
