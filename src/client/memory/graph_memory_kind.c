/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a graph has allocated, when cuMemFree or cuMemFreeAsync frees it. */
#include "cleanup.h"
#include "client_capture.h"
#include "client_stream.h"
#include "graph_memory.h"

#include "address_map.h"
#include "client_call.h"
#include "stream_commands.h"

/* A graph that has ended has freed its memory already. */
static CUresult give_behind(const struct allocation *allocation, struct fence fence)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);
    struct graph_memory *memory = graph_memory_find_locked(allocation->address);
    CUresult result = memory ? graph_memory_check_free_locked(memory) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    memory->behind = fence_pack(fence);
    graph_memory_freed_locked(memory);
    return CUDA_SUCCESS;
}

static CUresult give_graph_memory(const struct allocation *allocation)
{
    return give_behind(allocation, FENCE_OF_NOTHING);
}

static CUresult give_graph_memory_async(const struct allocation *allocation, struct stream *stream)
{
    struct fence fence;
    CUresult result = stream_fence(stream, &fence);

    return result != CUDA_SUCCESS ? result : give_behind(allocation, fence);
}

const struct memory_kind kind_graph = {
    .place = PLACE_DEVICE,
    .has_ipc_handle = true,
    .free = give_graph_memory,
    .free_async = give_graph_memory_async,
};
