/* SPDX-License-Identifier: Apache-2.0 */
/* See light_command.h. */
#include "light_command.h"

#include "channel_server.h"
#include "function.h"

/* A launch of a kernel that prints or allocates may wait. */
static bool is_light_launch(const struct session *session, const struct ring_message *message)
{
    struct wire_cuLaunchKernelEx in;

    if (!decode_cuLaunchKernelEx(message, message->size, &in))
        return false;
    const struct function *function = session_lookup(session, WIRE_FUNCTION, in.f);
    return function && !function->uses;
}

bool light_command(const struct session *session, int size, const struct ring_message *message)
{
    if (size < 0)
        return false;
    switch (channel_kind_op(message->kind)) {
    case WIRE_cuLaunchKernelEx:
        return is_light_launch(session, message);
    case WIRE_fnFence:
    case WIRE_fnWake:
    case WIRE_fnHold:
    case WIRE_fnMemset:
    case WIRE_cuMemcpyAsync:
    case WIRE_cuMemcpyHtoDAsync_v2:
    case WIRE_cuEventRecordWithFlags:
    case WIRE_cuStreamWaitEvent:
        return true;
    default:
        return false;
    }
}
