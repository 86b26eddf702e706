/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of graphs with conditional nodes. NVIDIA's driver (580) cannot run two of one context side
 * by side: loops of several threads end with CUDA_ERROR_LAUNCH_FAILED there without Funnel, too.
 * All clients are in one context, so each such launch waits on the GPU for the one before, whoever
 * made that. Nobody waits on the CPU.
 */
#include "cleanup.h"
#include "graph_state.h"
#include "spare_events.h"
#include "stream.h"

static CUresult wait_for_the_last(struct graph_turn *turn, const struct stream *stream)
{
    return turn->behind ? driver.cuStreamWaitEvent(stream->driver, turn->behind, 0)
                        : spare_event_take(stream->device, &turn->behind);
}

CUresult graph_launch_in_turn(const struct graph *graph, const struct stream *stream)
{
    struct graph_turn *turn = &graph->session->server->graphs->turns[graph->device->index];
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&turn->lock);
    CUresult result = wait_for_the_last(turn, stream);

    if (result == CUDA_SUCCESS)
        result = driver.cuGraphLaunch(graph->exec, stream->driver);
    return result != CUDA_SUCCESS ? result : driver.cuEventRecord(turn->behind, stream->driver);
}
