/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that free memory which a graph has allocated. */
#include "graph_memory_free.h"

#include "cleanup.h"
#include "client_capture.h"
#include "graph_memory.h"

bool graph_memory_takes_free(CUdeviceptr address, struct stream *stream, CUresult *ret_result)
{
    struct fence fence;

    if (!graph_memory_exists())
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client_graph_lock);
    struct graph_memory *memory = graph_memory_find_locked(address);

    if (!memory)
        return false;
    *ret_result = graph_memory_check_free_locked(memory);
    if (*ret_result == CUDA_SUCCESS && stream)
        *ret_result = stream_fence(stream, &fence);
    if (*ret_result != CUDA_SUCCESS)
        return true;
    memory->behind = fence_pack(stream ? fence : FENCE_OF_NOTHING);
    graph_memory_freed_locked(memory);
    return true;
}
