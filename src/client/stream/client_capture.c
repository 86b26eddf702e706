/* SPDX-License-Identifier: Apache-2.0 */
/* From calls on streams to the captures of src/graph; see client_capture.h. */
#include "client_capture.h"

#include <stdatomic.h>
#include <string.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_prototypes.h"

#define CAPTURE_ATTRIBUTES_MAX 64u

pthread_mutex_t client_graph_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_bool client_captured;

void capture_init(void)
{
    pthread_mutex_init(&client_graph_lock, NULL);
    client_captured = false;
}

/* Partner stream_is_plain(): a race with it is one of the program with itself. */
void capture_announce(void)
{
    atomic_store_explicit(&client_captured, true, memory_order_relaxed);
}

#define GRAPHS_LOCKED _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client_graph_lock)

bool stream_captures_locked(struct stream *stream, CUresult *ret_result)
{
    if (capture_is_on(&stream->capture))
        return true;
    *ret_result = stream->kind == STREAM_LEGACY ? capture_legacy_locked(stream->context->handle)
                                                : CUDA_SUCCESS;
    return false;
}

/* The kernel's own attributes, and the priority of the stream. */
static unsigned gather_attributes(const struct stream *stream, const CUlaunchConfig *config,
                                  CUlaunchAttribute *ret_attributes)
{
    unsigned count = 0;

    if (stream->priority != 0)
        ret_attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                      .value.priority = stream->priority};
    for (unsigned i = 0; i < config->numAttrs && count < CAPTURE_ATTRIBUTES_MAX; i++)
        ret_attributes[count++] = config->attrs[i];
    return count;
}

static CUDA_KERNEL_NODE_PARAMS node_of_launch(const struct stream *stream,
                                              const CUlaunchConfig *config, CUfunction f,
                                              void **values, void **extra)
{
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = f,
        .gridDimX = config->gridDimX,
        .gridDimY = config->gridDimY,
        .gridDimZ = config->gridDimZ,
        .blockDimX = config->blockDimX,
        .blockDimY = config->blockDimY,
        .blockDimZ = config->blockDimZ,
        .sharedMemBytes = config->sharedMemBytes,
        .kernelParams = values,
        .extra = extra,
        .ctx = stream->context->handle,
    };
}

bool capture_takes_kernel(struct stream *stream, const CUlaunchConfig *config, CUfunction f,
                          void **values, void **extra, CUresult *ret_result)
{
    CUlaunchAttribute attributes[CAPTURE_ATTRIBUTES_MAX];

    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;

    const CUDA_KERNEL_NODE_PARAMS params = node_of_launch(stream, config, f, values, extra);
    unsigned count = gather_attributes(stream, config, attributes);
    *ret_result = capture_kernel_locked(&stream->capture, &params, attributes, count);
    return true;
}

bool capture_takes_fill(struct stream *stream, const CUDA_MEMSET_NODE_PARAMS *fill, bool sync,
                        CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = sync ? capture_refuse_locked(&stream->capture)
                       : capture_fill_locked(&stream->capture, fill);
    return true;
}

bool capture_takes_host(struct stream *stream, CUhostFn function, void *user, CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = capture_host_locked(&stream->capture, function, user);
    return true;
}

bool capture_takes_mem_ops(struct stream *stream, unsigned count,
                           const CUstreamBatchMemOpParams *ops, CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = capture_mem_ops_locked(&stream->capture, count, ops);
    return true;
}

bool capture_takes_allocation(struct stream *stream, CUdevice device, size_t size,
                              CUdeviceptr *ret_address, CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;

    const CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = size,
    };
    *ret_result = capture_allocate_locked(&stream->capture, &params, ret_address);
    return true;
}

bool capture_takes_free(struct stream *stream, CUdeviceptr address, CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = capture_free_locked(&stream->capture, address);
    return true;
}

bool capture_takes_exec_locked(struct stream *stream, const struct graph_exec *exec,
                               CUresult *ret_result)
{
    if (stream_is_plain(stream))
        return false;
    if (!stream_captures_locked(stream, ret_result))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = capture_exec_locked(&stream->capture, exec);
    return true;
}

bool capture_takes_record(struct stream *stream, struct capture_event *event, CUevent handle,
                          unsigned flags, CUresult *ret_result)
{
    if (stream_is_plain(stream) && !capture_has_event(event))
        return false;
    GRAPHS_LOCKED;
    if (stream_captures_locked(stream, ret_result)) {
        *ret_result = capture_record_locked(&stream->capture, event, handle, flags);
        return true;
    }
    if (*ret_result == CUDA_SUCCESS && capture_has_event(event))
        capture_event_forget_locked(event);
    return *ret_result != CUDA_SUCCESS;
}

CUresult capture_record_of_launch(struct stream *stream, struct capture_event *event,
                                  CUevent handle, CUgraphEdgeData data)
{
    CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

    GRAPHS_LOCKED;
    return stream_captures_locked(stream, &result)
               ? capture_record_port_locked(&stream->capture, event, handle, data)
               : result;
}

bool capture_takes_wait(struct stream *stream, struct capture_event *event, CUevent handle,
                        unsigned flags, bool is_recorded, CUresult *ret_result)
{
    if (stream_is_plain(stream) && !capture_has_event(event))
        return false;
    GRAPHS_LOCKED;
    if (!stream_captures_locked(stream, ret_result) && !capture_has_event(event))
        return *ret_result != CUDA_SUCCESS;
    *ret_result = capture_wait_locked(&stream->capture, event, handle, flags, is_recorded);
    return true;
}

CUresult capture_check_stream_slowly(struct stream *stream)
{
    CUresult result = CUDA_SUCCESS;

    GRAPHS_LOCKED;
    return stream_captures_locked(stream, &result) ? capture_refuse_locked(&stream->capture)
                                                   : result;
}

CUresult capture_check_event(struct capture_event *event)
{
    if (!capture_has_event(event))
        return CUDA_SUCCESS;
    GRAPHS_LOCKED;
    return capture_refuse_event_locked(event);
}

CUresult context_enter_unsafe(struct context **ret_context)
{
    CUresult result = context_enter(ret_context);

    return result != CUDA_SUCCESS ? result : capture_check_unsafe();
}

CUresult capture_check_unsafe(void)
{
    if (!atomic_load_explicit(&client_captured, memory_order_relaxed))
        return CUDA_SUCCESS;
    GRAPHS_LOCKED;
    return capture_unsafe_locked();
}

void capture_forget_stream(struct stream *stream)
{
    if (!capture_is_on(&stream->capture))
        return;
    GRAPHS_LOCKED;
    capture_stream_gone_locked(&stream->capture);
}

void capture_forget_event(struct capture_event *event)
{
    if (!capture_has_event(event))
        return;
    GRAPHS_LOCKED;
    capture_event_forget_locked(event);
}
