/* SPDX-License-Identifier: Apache-2.0 */
/* See profile_export.h. The server's records name handles and addresses; a profiler wants ids and
 * kinds of memory. */
#include "profile_export.h"

#include <stdlib.h>
#include <string.h>

#include "address_map.h"
#include "cleanup.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_profile.h"
#include "client_stream.h"
#include "cudart.h"
#include "exec_plan.h"
#include "module_function.h"
#include "wire_calls.h"

const CUuuid profile_interface_id = PROFILER_INTERFACE_ID;

/* ---- from records to work ---- */

/* A stream that has ended, or is the legacy stream of the device, belongs to the primary context.
 */
static void describe_place(const struct trace_record *record, struct profiler_work *work)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->lock);
    const struct stream *stream = handles_get(&client->handles, WIRE_STREAM, record->stream_handle);
    const struct device *device = device_lookup((CUdevice)record->device);

    if (!device)
        device = &client->devices[0];
    if (stream)
        device = stream->device;
    work->device = (uint32_t)device->ordinal;
    work->context = (uint32_t)(stream ? stream->context->id : device->primary->id);
    work->stream = (uint32_t)(stream ? stream->id : handle_index(record->stream_handle));
}

/* Registered memory of the program, and variables. What is registered no longer is pageable. */
static enum profiler_memory memory_outside(uint64_t address)
{
    static const enum profiler_memory memories[] = {
        [PLACE_NOWHERE] = PROFILER_UNKNOWN,
        [PLACE_PAGEABLE] = PROFILER_PAGEABLE,
        [PLACE_DEVICE] = PROFILER_DEVICE,
        [PLACE_PINNED] = PROFILER_PINNED,
    };

    return memories[address_map_place(address, 0)];
}

/* Device memory lies below the page-locked memory of the window; staging slots stand for pageable
 * memory, as does data that traveled in the command. */
static enum profiler_memory memory_at(uint64_t address)
{
    if (!address)
        return PROFILER_UNKNOWN;
    if (address >= client->staging_address &&
        address - client->staging_address < GPU_REGION_STAGING_SIZE)
        return PROFILER_PAGEABLE;
    if (!client_in_window(address))
        return memory_outside(address);
    return address >= client->host_base ? PROFILER_PINNED : PROFILER_DEVICE;
}

/* That of the work, where the allocation has ended. */
static struct profiler_place place_at(uint64_t address, const struct profiler_work *work)
{
    struct profiler_place place = {.device = work->device, .context = work->context};
    struct allocation allocation;

    if (!address_map_find(address, &allocation) || !allocation.context)
        return place;
    place.device = (uint32_t)allocation.context->device->ordinal;
    place.context = (uint32_t)allocation.context->id;
    return place;
}

static void describe_copy(const struct trace_record *record, struct profiler_work *work)
{
    work->to = memory_at(record->to);
    work->from = record->to && !record->from ? PROFILER_PAGEABLE : memory_at(record->from);
    work->to_place = place_at(record->to, work);
    work->from_place = place_at(record->from, work);
}

static void describe_kernel(const struct function_facts *facts, struct profiler_work *work)
{
    work->name = facts->name;
    work->registers = facts->registers;
    work->static_shared = facts->static_shared;
    work->local_per_thread = facts->local;
}

static void describe_node(const struct trace_record *record, struct profiler_work *work)
{
    work->in_graph = record->in_graph != 0;
    if (record->node)
        exec_find_node(record->in_graph, record->node - 1, &work->graph, &work->node);
}

static void take_record(const struct trace_record *record, const struct profiler_hooks *hooks)
{
    struct function_facts facts = {.name = NULL};
    struct profiler_work work = {
        .kind = (enum profiler_work_kind)(record->kind - TRACE_KERNEL + PROFILER_KERNEL),
        .correlation = record->correlation,
        .submitted_ns = record->submitted_ns,
        .begin_ns = record->begin_ns,
        .end_ns = record->end_ns,
        .bytes = record->bytes,
        .value = record->value,
        .name = record->name,
        .dynamic_shared = record->shared_bytes,
    };

    if (record->kind < TRACE_KERNEL || record->kind > TRACE_GRAPH)
        return;
    memcpy(work.grid, record->grid, sizeof(work.grid));
    memcpy(work.block, record->block, sizeof(work.block));
    describe_place(record, &work);
    describe_node(record, &work);
    if (record->kind == TRACE_COPY)
        describe_copy(record, &work);
    if (record->kind == TRACE_KERNEL && function_find_facts(record->object_handle, &facts))
        describe_kernel(&facts, &work);
    hooks->take(&work);
    free(facts.name);
}

/* ---- the table ---- */

/* The only argument of cudaEventSynchronize(), and the second of cudaStreamWaitEvent(). */
static CUevent event_of(const struct cudart_call *call)
{
    CUevent const *arguments = call->arguments;

    if (!strcmp(call->name, "cudaEventSynchronize"))
        return arguments[0];
    return !strcmp(call->name, "cudaStreamWaitEvent") ? arguments[1] : NULL;
}

static void on_runtime_call(const struct cudart_call *call)
{
    const struct profiler_call seen = {
        .name = call->name,
        .runtime_cbid = call->id,
        .arguments = call->arguments,
        .symbol = call->symbol,
        .result = call->result ? *(const int *)call->result : 0,
        .stream = call->stream,
        .event = event_of(call),
    };

    client_profile_runtime(&seen, call->exits);
}

static CUresult begin_profile(const struct profiler_hooks *hooks)
{
    CUresult result = client_profile_begin(hooks);

    if (result == CUDA_SUCCESS)
        cudart_observe(on_runtime_call);
    return result;
}

static CUresult collect_work(int ask)
{
    return client_profile_collect(ask, take_record);
}

static CUresult end_profile(void)
{
    CUresult result;

    cudart_observe(NULL);
    result = client_profile_end(take_record);
    function_forget_facts();
    return result;
}

static unsigned list_nodes(CUgraphExec handle, unsigned capacity, struct profiler_node *ret_nodes)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock);
    const struct graph_exec *exec = graph_exec_get(handle);

    for (unsigned i = 0; exec && i < exec->count && i < capacity; i++)
        ret_nodes[i] = (struct profiler_node){
            .original = (CUgraphNode)(uintptr_t)exec->nodes[i]->original,
            .type = exec->nodes[i]->work.type,
        };
    return exec ? exec->count : 0;
}

const struct profiler_interface profile_interface = {
    .size = sizeof(profile_interface),
    .begin = begin_profile,
    .end = end_profile,
    .collect = collect_work,
    .lost = client_profile_lost,
    .exec_nodes = list_nodes,
};
