/* SPDX-License-Identifier: Apache-2.0 */
#include "swap_copy.h"

#include <fcntl.h>
#include <stdlib.h>

#include "allocation.h"
#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "swap.h"
#include "swap_pool.h"

struct swap_pool *swap_pool_of(const struct session *session)
{
    return &session->server->memory->swap_pool;
}

uint64_t swap_segment_size(const struct swap_copy *copy, unsigned segment)
{
    uint64_t left = copy->size - segment * SWAP_CHUNK;

    return left < SWAP_CHUNK ? left : SWAP_CHUNK;
}

void swap_copy_empty(struct swap_pool *pool, struct swap_copy *copy)
{
    while (copy->count) {
        unsigned last = --copy->count;
        swap_pool_give(pool, copy->segments[last], swap_segment_size(copy, last));
    }
}

void swap_copy_end(struct swap_pool *pool, struct swap_copy *copy)
{
    swap_copy_empty(pool, copy);
    fd_close(&copy->fd);
    free(copy->hashes);
    free(copy);
}

void swap_forget(struct session *session, struct granule *granule)
{
    session->memory->device[granule->part].swapped -= granule->size;
    swap_copy_end(swap_pool_of(session), granule->swapped);
    granule->swapped = NULL;
}

CUresult swap_copy_begin(struct session *session, struct granule *granule, unsigned segments)
{
    struct swap_copy *copy = calloc(1, sizeof(*copy) + segments * sizeof(uint64_t));

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->fd = -1;
    copy->size = granule->size;
    granule->swapped = copy;
    session->memory->device[granule->part].swapped += granule->size;
    return CUDA_SUCCESS;
}

CUresult swap_copy_give_file(struct swap_copy *copy, int fd)
{
    copy->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy->fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static enum swap_place place_of(const struct granule *granule)
{
    if (granule->is_away)
        return SWAP_AWAY;
    return granule->swapped ? SWAP_MOVING : SWAP_HERE;
}

static bool is_wanted(const struct granule *granule, enum swap_place place)
{
    return (granule->kind == GRANULE_DEVICE || granule->kind == GRANULE_CREATED) &&
           !granule->on_host && place_of(granule) == place;
}

static CUresult act_on(struct session *session, struct granule *granule, enum swap_place place,
                       granule_action *act, void *context)
{
    if (!is_wanted(granule, place))
        return CUDA_SUCCESS;
    CUresult result = session_enter(session, session_device(session, granule->part));
    return result == CUDA_SUCCESS ? act(session, granule, context) : result;
}

/* Until one fails, in the context of each device. */
CUresult swap_for_each(struct session *session, enum swap_place place, granule_action *act,
                       void *context)
{
    CUresult result = CUDA_SUCCESS;
    const struct range *range;

    for (uint64_t at = 0; result == CUDA_SUCCESS; at = range->start + 1) {
        range = ranges_next(&session->memory->extents, at);
        if (!range)
            break;
        result = act_on(session, range->value, place, act, context);
    }
    list_for_each (struct allocation, allocation, &session->memory->created, link)
        if (result == CUDA_SUCCESS)
            result = act_on(session, &allocation->memory, place, act, context);
    return result;
}
