/* SPDX-License-Identifier: Apache-2.0 */
#include "swap_copy.h"

#include <fcntl.h>
#include <stdlib.h>

#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "placement.h"
#include "swap.h"
#include "swap_pool.h"

struct swap_pool *swap_pool_of(const struct session *session)
{
    return &session->server->memory->swap_pool;
}

uint64_t swap_segment_size(const struct granule *granule, unsigned segment)
{
    uint64_t left = granule->size - segment * SWAP_CHUNK;

    return left < SWAP_CHUNK ? left : SWAP_CHUNK;
}

void swap_forget(struct session *session, struct granule *granule)
{
    struct swap_copy *copy = granule->swapped;

    for (unsigned i = 0; i < copy->count; i++)
        swap_pool_give(swap_pool_of(session), copy->segments[i], swap_segment_size(granule, i));
    session->memory->device[granule->part].swapped -= granule->size;
    granule->swapped = NULL;
    fd_close(&copy->fd);
    free(copy);
}

CUresult swap_copy_begin(struct session *session, struct granule *granule, unsigned segments)
{
    struct swap_copy *copy = calloc(1, sizeof(*copy) + segments * sizeof(uint64_t));

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->fd = -1;
    granule->swapped = copy;
    session->memory->device[granule->part].swapped += granule->size;
    return CUDA_SUCCESS;
}

CUresult swap_copy_give_file(struct swap_copy *copy, int fd)
{
    copy->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy->fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Which granules: those with memory of their device, or those whose contents are in the pool. */
static bool is_wanted(const struct granule *granule, bool swapped)
{
    return granule->kind == GRANULE_DEVICE && !granule->on_host &&
           (granule->swapped != NULL) == swapped;
}

/* Until one fails, in the context of each device. */
CUresult swap_for_each(struct session *session, bool swapped, granule_action *act, void *context)
{
    CUresult result = CUDA_SUCCESS;
    const struct range *range;

    for (uint64_t at = 0; result == CUDA_SUCCESS; at = range->start + 1) {
        range = ranges_next(&session->memory->extents, at);
        if (!range)
            break;
        struct granule *granule = range->value;
        if (!is_wanted(granule, swapped))
            continue;
        result = session_enter(session, session_device(session, granule->part));
        if (result == CUDA_SUCCESS)
            result = act(session, granule, context);
    }
    return result;
}
