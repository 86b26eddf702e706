/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All copies of a direction are in flight together. Granules without hashes of their last contents
 * are copied while the devices hash all of them; those that have changed follow.
 */
#include "swap_moves.h"

#include <stdlib.h>

#include "chunk_hasher.h"
#include "device_granule.h"
#include "memory_state.h"
#include "swap_copy.h"
#include "swap_pool.h"

/* One stream for each device. */
struct moves {
    CUstream stream[SERVER_MAX_DEVICES];
    bool out;
    uint64_t copied;
    struct hash_region *regions; /* of all granules, in their order; NULL = there are no hashes */
    unsigned count, next;
};

/* ---- the contents of a granule ---- */

/* Bytes of one segment. */
static CUresult copy_part(struct moves *moves, const struct granule *granule, uint64_t from,
                          uint64_t to)
{
    CUdeviceptr here = granule->address + from,
                there = granule->swapped->segments[from / SWAP_CHUNK] + from % SWAP_CHUNK;

    moves->copied += to - from;
    return driver.cuMemcpyAsync(moves->out ? there : here, moves->out ? here : there, to - from,
                                moves->stream[granule->part]);
}

static CUresult copy_whole(struct moves *moves, const struct granule *granule)
{
    const struct swap_copy *copy = granule->swapped;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < copy->count && result == CUDA_SUCCESS; i++)
        result =
            copy_part(moves, granule, i * SWAP_CHUNK, i * SWAP_CHUNK + swap_segment_size(copy, i));
    return result;
}

/* The end of the chunks from `at` on that have, or have not changed, in the same segment. */
static uint64_t find_end(const struct granule *granule, const struct chunk_hash *now, uint64_t at,
                         bool changed)
{
    const struct chunk_hash *before = granule->swapped->hashes;

    do
        at += HASH_CHUNK;
    while (at < granule->size && at % SWAP_CHUNK &&
           chunk_hash_is_equal(&now[at / HASH_CHUNK], &before[at / HASH_CHUNK]) != changed);
    return at < granule->size ? at : granule->size;
}

static CUresult copy_changed(struct moves *moves, const struct granule *granule,
                             const struct chunk_hash *now)
{
    const struct chunk_hash *before = granule->swapped->hashes;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t at = 0, end; at < granule->size && result == CUDA_SUCCESS; at = end) {
        bool changed = !chunk_hash_is_equal(&now[at / HASH_CHUNK], &before[at / HASH_CHUNK]);
        end = find_end(granule, now, at, changed);
        if (changed)
            result = copy_part(moves, granule, at, end);
    }
    return result;
}

/* ---- granules, by swap_for_each() ---- */

static CUresult open_stream(struct moves *moves, const struct granule *granule)
{
    CUstream *stream = &moves->stream[granule->part];

    return *stream ? CUDA_SUCCESS
                   : driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);
}

static bool is_known(const struct moves *moves, const struct granule *granule)
{
    return moves->out && granule->swapped->hashes;
}

static CUresult move_unknown(struct session *session, struct granule *granule, void *context)
{
    struct moves *moves = context;

    if (granule->swapped->fd >= 0 || is_known(moves, granule))
        return CUDA_SUCCESS;
    CUresult result = open_stream(moves, granule);
    return result == CUDA_SUCCESS ? copy_whole(moves, granule) : result;
}

static CUresult move_known(struct session *session, struct granule *granule, void *context)
{
    struct moves *moves = context;
    const struct hash_region *region = moves->regions ? &moves->regions[moves->next++] : NULL;

    if (!is_known(moves, granule))
        return CUDA_SUCCESS;
    CUresult result = open_stream(moves, granule);
    if (result != CUDA_SUCCESS)
        return result;
    return region ? copy_changed(moves, granule, region->hashes) : copy_whole(moves, granule);
}

/* Returns `result`, or the first error of a copy. */
static CUresult end_copies(struct session *session, const struct moves *moves, CUresult result)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!moves->stream[i] || session_enter(session, session_device(session, i)))
            continue;
        CUresult ended = driver.cuStreamSynchronize(moves->stream[i]);
        driver.cuStreamDestroy_v2(moves->stream[i]);
        if (result == CUDA_SUCCESS)
            result = ended;
    }
    session_check(session, result);
    return result;
}

/* ---- hashes ---- */

static CUresult count_granule(struct session *session, struct granule *granule, void *context)
{
    ++*(unsigned *)context;
    return CUDA_SUCCESS;
}

static CUresult add_region(struct session *session, struct granule *granule, void *context)
{
    struct moves *moves = context;
    struct hash_region *region = &moves->regions[moves->count];

    *region = (struct hash_region){
        session_device(session, granule->part), granule->address, granule->size,
        calloc(swap_file_chunks(granule->size), sizeof(*region->hashes))};
    moves->count += region->hashes != NULL;
    return region->hashes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void end_hashes(struct moves *moves)
{
    for (unsigned i = 0; moves->regions && i < moves->count; i++)
        free(moves->regions[i].hashes);
    free(moves->regions);
    moves->regions = NULL;
    moves->count = 0;
}

static CUresult make_regions(struct session *session, struct moves *moves)
{
    unsigned count = 0;

    swap_for_each(session, SWAP_MOVING, count_granule, &count);
    moves->regions = calloc(count + 1, sizeof(*moves->regions));
    return moves->regions ? swap_for_each(session, SWAP_MOVING, add_region, moves)
                          : CUDA_ERROR_OUT_OF_MEMORY;
}

static void hash_all(struct session *session, struct moves *moves)
{
    CUresult result = make_regions(session, moves);

    if (result == CUDA_SUCCESS)
        result = chunk_hasher_run(&session->server->memory->hasher, moves->regions, moves->count);
    session->current = NULL; /* the thread may be in another device's context now */
    if (result == CUDA_SUCCESS)
        return;
    session_check(session, result);
    end_hashes(moves);
}

/* The granule's copy gets those that it has now. */
static CUresult give_hashes(struct session *session, struct granule *granule, void *context)
{
    struct moves *moves = context;
    struct swap_copy *copy = granule->swapped;

    free(copy->hashes);
    copy->hashes = NULL;
    if (!moves->regions)
        return CUDA_SUCCESS;
    copy->hashes = moves->regions[moves->next].hashes;
    moves->regions[moves->next++].hashes = NULL;
    return CUDA_SUCCESS;
}

/* ---- both directions ---- */

CUresult swap_moves_out(struct session *session, uint64_t *ret_copied)
{
    struct moves moves = {.out = true};
    CUresult result = swap_for_each(session, SWAP_MOVING, move_unknown, &moves);

    if (result == CUDA_SUCCESS)
        hash_all(session, &moves);
    if (result == CUDA_SUCCESS)
        result = swap_for_each(session, SWAP_MOVING, move_known, &moves);
    result = end_copies(session, &moves, result);
    moves.next = 0;
    if (result == CUDA_SUCCESS)
        swap_for_each(session, SWAP_MOVING, give_hashes, &moves);
    end_hashes(&moves);
    *ret_copied = moves.copied;
    return result;
}

CUresult swap_moves_in(struct session *session)
{
    struct moves moves = {.out = false};
    CUresult result = swap_for_each(session, SWAP_MOVING, move_unknown, &moves);

    return end_copies(session, &moves, result);
}
