/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between a client's devices. The driver grants access per mapping, so each pair is
 * recorded for later granules.
 */
#include "memory_state.h"
#include "server_dispatch.h"

static bool is_pair(struct session *session, uint32_t device, uint32_t peer)
{
    const struct device *from = session_find_device(session, "cuCtxEnablePeerAccess", device);
    const struct device *to = session_find_device(session, "cuCtxEnablePeerAccess", peer);

    return from && to && from != to && from->record.peers >> peer & 1;
}

static bool is_memory_of(const struct granule *granule, unsigned device)
{
    return (granule->kind == GRANULE_DEVICE || granule->kind == GRANULE_IMPORTED) &&
           granule->part == device;
}

static CUresult grant_all(const struct session *session, unsigned part)
{
    const struct range *range = ranges_next(&session->memory->extents, 0);
    CUresult result = CUDA_SUCCESS;

    for (; range && result == CUDA_SUCCESS;
         range = ranges_next(&session->memory->extents, range->start + 1)) {
        const struct granule *granule = range->value;

        if (is_memory_of(granule, part))
            result = memory_grant(session, part, granule->address, granule->size);
    }
    return result;
}

CUresult serve_cuCtxEnablePeerAccess(struct session *session,
                                     const struct wire_cuCtxEnablePeerAccess *in)
{
    uint64_t before;
    CUresult result;

    if (!is_pair(session, in->device, in->peer))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    before = session->memory->device[in->peer].reached_by;
    session->memory->device[in->peer].reached_by |= 1ull << in->device;
    result = session_enter(session, session_device(session, in->peer));
    if (result == CUDA_SUCCESS)
        result = grant_all(session, in->peer);
    if (result != CUDA_SUCCESS)
        session->memory->device[in->peer].reached_by = before;
    return result;
}
