/* SPDX-License-Identifier: Apache-2.0 */
/* In order: the parts of an object come before the object. */
#include "replay.h"

#include "affinity.h"
#include "client.h"
#include "client_event.h"
#include "client_library.h"
#include "client_managed.h"
#include "client_module.h"
#include "client_peer_access.h"
#include "client_socket.h"
#include "client_stream.h"
#include "context_limits.h"
#include "exec_plan.h"
#include "granule.h"
#include "host_register.h"
#include "managed_variable.h"
#include "module_function.h"
#include "vmm_replay.h"
#include "wire_calls.h"

struct replay {
    unsigned kind;
    CUresult result;
};

static CUresult replay_context(struct context *context)
{
    CUresult result = affinity_replay(context);

    return result == CUDA_SUCCESS ? context_replay_limits(context) : result;
}

static CUresult replay_one(unsigned kind, uint64_t handle, void *object)
{
    switch (kind) {
    case CLIENT_CONTEXT:
        return replay_context(object);
    case CLIENT_LIBRARY:
        library_forget_server(object);
        return CUDA_SUCCESS;
    case WIRE_MODULE:
        return module_replay(object);
    case WIRE_FUNCTION:
        return function_replay(object);
    case WIRE_STREAM:
        return stream_replay(object);
    case WIRE_EVENT:
        return event_replay(object);
    default:
        return exec_replay(object, handle);
    }
}

static void replay_object(void *context, uint64_t handle, void *object)
{
    struct replay *replay = context;

    if (handle_type(handle) == replay->kind && replay->result == CUDA_SUCCESS)
        replay->result = replay_one(replay->kind, handle, object);
}

/* The answer means that everything before it was done. */
static CUresult wait_for_server(void)
{
    struct wire_cuMemGetInfo_v2 in = {.device = client->devices[0].index};
    struct wire_cuMemGetInfo_v2_reply out;
    CUresult result = wire_cuMemGetInfo_v2(&client->channel, &in, &out);

    return result != CUDA_SUCCESS ? result : channel_take_deferred_error(&client->channel);
}

bool replay_has_memory(void)
{
    return granules_are_whole() && managed_is_whole();
}

void replay_give_up_memory(void)
{
    granules_give_up();
    vmm_give_up();
    managed_give_up();
}

/* A suspended client stays so: what follows waits in the server until it is resumed. */
static void end_memory(void)
{
    const struct wire_fnGranulesAdopted in = {};

    channel_lock(&client->channel);
    wire_fnGranulesAdopted(&client->channel, &in);
    channel_unlock(&client->channel);
}

/* A server takes each device's own part for granted. */
static void replay_parts(void)
{
    channel_lock(&client->channel);
    for (int i = 0; i < client->device_count; i++) {
        const struct wire_fnDevicePart in = {client->devices[i].index, client->devices[i].part};

        if (in.device != in.part)
            wire_fnDevicePart(&client->channel, &in);
    }
    channel_unlock(&client->channel);
}

CUresult replay_memory(void)
{
    replay_parts();
    CUresult result = granule_replay_all();

    if (result == CUDA_SUCCESS)
        result = managed_replay();
    if (result == CUDA_SUCCESS)
        result = vmm_replay();
    if (result != CUDA_SUCCESS)
        return result;
    end_memory();
    result = peer_replay();
    return result == CUDA_SUCCESS ? host_register_replay() : result;
}

/* Before any kernel of the modules runs. */
static CUresult set_variables(const struct replay_variables *variables)
{
    struct wire_fnVariablesSet in = {.size = variables->size};
    CUresult result = client_send_descriptor(variables->fd, variables->size, &in.blob);

    return result == CUDA_SUCCESS ? wire_fnVariablesSet(&client->channel, &in) : result;
}

CUresult replay_objects(const struct replay_variables *variables)
{
    static const unsigned kinds[] = {CLIENT_CONTEXT, CLIENT_LIBRARY, WIRE_MODULE, WIRE_FUNCTION,
                                     WIRE_STREAM,    WIRE_EVENT,     WIRE_GRAPH};
    struct replay replay = {.result = CUDA_SUCCESS};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        replay.kind = kinds[i];
        handles_for_each(&client->handles, replay_object, &replay);
        if (kinds[i] == WIRE_MODULE && replay.result == CUDA_SUCCESS && variables &&
            variables->fd >= 0)
            replay.result = set_variables(variables);
    }
    return replay.result != CUDA_SUCCESS ? replay.result : wait_for_server();
}
