/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serializes launches of graphs with conditional nodes. NVIDIA's driver (580) cannot run two of
 * them concurrently in one context: even without Funnel, loops of several threads fail with
 * CUDA_ERROR_LAUNCH_FAILED. All clients are in one context, so each such launch waits on the GPU
 * for the previous one. No thread waits on the CPU.
 *
 * Nor can the driver run one while nodes of another graph are set (batch_pause.h).
 */
#include "graph_turn.h"

#include "batch_pause.h"
#include "cleanup.h"
#include "clock.h"
#include "idle_probe.h"
#include "spare_events.h"
#include "stream.h"
#include "suspend.h"

#define COMMANDS_TIMEOUT_NS (20 * NS_PER_MS)

/* Longer kernels are hardly ever batched. */
#define BATCHES_TIMEOUT_NS (1 * NS_PER_SEC)

static CUresult wait_for_the_last(struct graph_turn *turn, const struct stream *stream)
{
    return turn->behind ? driver.cuStreamWaitEvent(stream->driver, turn->behind, 0)
                        : spare_event_take(stream->device, &turn->behind);
}

/* Waits until every other client's thread has ended its present command, which may launch a batch.
 */
static void await_commands(struct session *session)
{
    struct server *server = session->server;
    uint64_t until = clock_ns() + COMMANDS_TIMEOUT_NS;
    struct exclusive_call call = {.count = 0};

    pthread_mutex_lock(&server->lock);
    list_for_each (struct session, other, &server->sessions, link) {
        if (other != session && other->phase == SESSION_SERVING)
            suspend_session(&call, other, until);
    }
    pthread_mutex_unlock(&server->lock);
    suspend_await_rest(server, &call, COMMANDS_TIMEOUT_NS);
    suspend_end(server, &call);
}

static void await_batches(struct session *session, const struct device *device)
{
    struct idle_probe probe;

    if (idle_probe_try(&probe, session, device, BATCHES_TIMEOUT_NS))
        idle_probe_await(&probe, BATCHES_TIMEOUT_NS);
    idle_probe_end(&probe);
}

/* The lock keeps other threads from making or launching such a graph before that is done. */
void graph_pause_batches(const struct graph *graph)
{
    struct graph_turn *turn = &graph->session->server->graphs->turns[graph->device->ordinal];
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&turn->lock);

    if (batch_pause_begin(graph->device))
        return;
    await_commands(graph->session);
    await_batches(graph->session, graph->device);
}

CUresult graph_launch_in_turn(const struct graph *graph, const struct stream *stream)
{
    struct graph_turn *turn = &graph->session->server->graphs->turns[graph->device->ordinal];
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&turn->lock);
    CUresult result = wait_for_the_last(turn, stream);

    if (result == CUDA_SUCCESS)
        result = driver.cuGraphLaunch(graph->exec, stream->driver);
    return result != CUDA_SUCCESS ? result : driver.cuEventRecord(turn->behind, stream->driver);
}
