/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that is about to load code asks whether it had better do so in another lane. It had if
 * others have long kernels here. A client that has a name of cuIpc which this server does not know
 * asks for the lane of the server that does. Then the daemon is asked to order the move
 * (session_leave.h).
 */
#include "clock.h"
#include "ipc_share.h"
#include "log.h"
#include "long_work_watch.h"
#include "server_dispatch.h"
#include "session.h"
#include "session_idle.h"
#include "session_leave.h"

#define IDLE_TIMEOUT_NS (200 * NS_PER_MS)

/* Short kernels end soon. What lasts longer the load would wait for as well. */
static bool become_idle(struct session *session)
{
    const struct idle_wait wait = {.deadline = clock_ns() + IDLE_TIMEOUT_NS,
                                   .collects_output = true};

    return session_await_idle(session, &wait);
}

static bool has_reason(struct session *session, uint32_t server)
{
    return server ? server != ipc_server_number()
                  : become_idle(session) && long_work_is_in_the_way(session);
}

CUresult serve_fnMove(struct session *session, const struct wire_fnMove *in)
{
    if (!has_reason(session, in->server) || !session_leave_wish(session, in->server))
        return CUDA_ERROR_NOT_READY;
    if (in->server)
        session_log(session, " asks for the lane of server %u, with %u objects", in->server,
                    in->handles);
    else
        session_log(session, " asks for a lane without long kernels, with %u objects", in->handles);
    return CUDA_SUCCESS;
}
