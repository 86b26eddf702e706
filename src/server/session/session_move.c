/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves a client from one context of the server to the other. Its memory belongs to no context and
 * stays. All other objects end here, while none is at work. The client then recreates them, as it
 * does after the end of a server.
 */
#include "array.h"
#include "clock.h"
#include "graph.h"
#include "lending.h"
#include "log.h"
#include "placement.h"
#include "server_dispatch.h"
#include "server_module.h"
#include "session.h"
#include "session_idle.h"
#include "sm_share.h"
#include "stream.h"

#define IDLE_TIMEOUT_NS (20 * NS_PER_MS)

static void check_object(void *context, uint64_t handle, void *object)
{
    bool *stays = context;

    switch (handle_type(handle)) {
    case WIRE_STREAM:
    case WIRE_EVENT:
    case WIRE_FUNCTION:
    case WIRE_GRAPH:
        break;
    case WIRE_MODULE:
        *stays |= module_has_state(object);
        break;
    default:
        *stays = true;
    }
}

/* The contents of variables and arrays would be lost, and an SM share belongs to one context. */
static bool has_to_stay(struct session *session)
{
    bool stays = false;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        stays |= sm_share_own(session, i)->partition != NULL;
    handles_for_each(&session->objects, check_object, &stays);
    return stays;
}

/* Waits briefly, because short kernels end soon. */
static bool become_idle(struct session *session)
{
    const struct idle_wait wait = {.deadline = clock_ns() + IDLE_TIMEOUT_NS,
                                   .collects_output = true};

    return session_await_idle(session, &wait);
}

CUresult serve_fnMove(struct session *session, const struct wire_fnMove *in)
{
    if (!session->server->devices.has_spares || has_to_stay(session))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!become_idle(session))
        return CUDA_ERROR_NOT_READY;
    session_log(session, " leaves the %s context, with %u objects",
                session->spare_mask ? "spare" : "primary", in->handles);
    graphs_forget_all(session);
    streams_forget_all(session);
    modules_forget_all(session);
    session_unplace(session);
    lending_begin(session);
    return CUDA_SUCCESS;
}
