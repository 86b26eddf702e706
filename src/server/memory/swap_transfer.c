/* SPDX-License-Identifier: Apache-2.0 */
#include "swap_transfer.h"

#include <errno.h>
#include <stdlib.h>

#include "chunk_team.h"
#include "cleanup.h"
#include "device_granule.h"
#include "placement.h"
#include "swap_copy.h"

/* The granules that are on their way, in the order of their addresses. */
struct transfer {
    int fd; /* of the file that is written; -1 = read from each granule's */
    struct chunk_region *regions;
    struct swap_entry *entries; /* of the regions */
    uint64_t *hashes;           /* of all their chunks */
    uint64_t flags;             /* of the entries that are written */
    uint64_t offset;            /* in the file, behind the last region */
    uint64_t bytes, chunks;     /* of all regions */
    unsigned count;
    int error; /* of the file; or 0 */
};

static CUresult fail_file(struct transfer *transfer, int error)
{
    transfer->error = error;
    return CUDA_ERROR_OPERATING_SYSTEM;
}

/* ---- what is to be moved ---- */

static bool is_part(const struct transfer *transfer, const struct granule *granule)
{
    return transfer->fd >= 0 || granule->swapped->fd >= 0;
}

static CUresult count_granule(struct session *session, struct granule *granule, void *context)
{
    struct transfer *transfer = context;

    if (!is_part(transfer, granule))
        return CUDA_SUCCESS;
    transfer->count++;
    transfer->bytes += granule->size;
    transfer->chunks += swap_file_chunks(granule->size);
    return CUDA_SUCCESS;
}

static CUresult add_granule(struct session *session, struct granule *granule, void *context)
{
    struct transfer *transfer = context;
    struct swap_entry entry = {.address = granule->address,
                               .size = granule->size,
                               .offset = transfer->offset,
                               .flags = transfer->flags};
    int fd = transfer->fd;

    if (!is_part(transfer, granule))
        return CUDA_SUCCESS;
    if (fd < 0) {
        entry = granule->swapped->entry;
        fd = granule->swapped->fd;
    }
    transfer->entries[transfer->count] = entry;
    transfer->regions[transfer->count++] = (struct chunk_region){
        session_device(session, granule->part), granule->address, granule->size, fd, entry.offset,
        transfer->hashes + transfer->chunks};
    transfer->offset += granule->size;
    transfer->chunks += swap_file_chunks(granule->size);
    return CUDA_SUCCESS;
}

static CUresult make_tables(struct transfer *transfer)
{
    transfer->regions = calloc(transfer->count + 1, sizeof(*transfer->regions));
    transfer->entries = calloc(transfer->count + 1, sizeof(*transfer->entries));
    transfer->hashes = calloc(transfer->chunks + 1, sizeof(*transfer->hashes));
    return transfer->regions && transfer->entries && transfer->hashes ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The count is made first, and then the tables are filled. */
static CUresult fill_tables(struct session *session, struct transfer *transfer)
{
    transfer->count = 0;
    transfer->chunks = 0;
    return swap_for_each(session, transfer->fd < 0, add_granule, transfer);
}

static void end_tables(struct transfer *transfer)
{
    free(transfer->regions);
    free(transfer->entries);
    free(transfer->hashes);
}

static CUresult move_all(struct session *session, struct transfer *transfer)
{
    const struct chunk_order order = {session, transfer->fd >= 0, transfer->regions,
                                      transfer->count};

    return chunk_team_run(&order, &transfer->error);
}

static uint64_t hash_of(const struct chunk_region *region)
{
    return swap_file_hash(region->hashes, swap_file_chunks(region->size));
}

/* ---- into a file ---- */

static CUresult save_all(struct session *session, struct transfer *transfer)
{
    int error = swap_file_begin(transfer->fd, transfer->count, transfer->bytes, &transfer->offset);
    CUresult result = error ? fail_file(transfer, error) : fill_tables(session, transfer);

    if (result == CUDA_SUCCESS)
        result = move_all(session, transfer);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < transfer->count; i++)
        transfer->entries[i].hash = hash_of(&transfer->regions[i]);
    error = swap_file_complete(transfer->fd, transfer->entries, transfer->count);
    return error ? fail_file(transfer, error) : CUDA_SUCCESS;
}

/* What the granules get is the next of the entries, and a descriptor. */
struct saved {
    const struct swap_entry *next;
    int fd;
};

static CUresult give_copy(struct session *session, struct granule *granule, void *context)
{
    struct saved *saved = context;
    CUresult result = swap_copy_begin(session, granule, 0);

    if (result != CUDA_SUCCESS)
        return result;
    granule->swapped->entry = *saved->next++;
    return swap_copy_give_file(granule->swapped, saved->fd);
}

static struct transfer begin_saving(const struct swap_saving *saving)
{
    return (struct transfer){.fd = saving->writable, .flags = saving->returns ? SWAP_RETURNS : 0};
}

static CUresult save(struct session *session, struct transfer *transfer)
{
    swap_for_each(session, false, count_granule, transfer);
    CUresult result = make_tables(transfer);
    return result == CUDA_SUCCESS ? save_all(session, transfer) : result;
}

CUresult swap_save(struct session *session, const struct swap_saving *saving, int *ret_error)
{
    struct transfer transfer = begin_saving(saving);
    CUresult result = save(session, &transfer);

    if (result == CUDA_SUCCESS && saving->readable >= 0) {
        struct saved saved = {transfer.entries, saving->readable};
        result = swap_for_each(session, false, give_copy, &saved);
    }
    end_tables(&transfer);
    *ret_error = transfer.error;
    return result;
}

/* ---- back from a file ---- */

static CUresult load_all(struct session *session, struct transfer *transfer)
{
    CUresult result = fill_tables(session, transfer);

    if (result == CUDA_SUCCESS)
        result = move_all(session, transfer);
    for (unsigned i = 0; i < transfer->count && result == CUDA_SUCCESS; i++)
        if (hash_of(&transfer->regions[i]) != transfer->entries[i].hash)
            result = fail_file(transfer, -EBADMSG);
    return result;
}

CUresult swap_load(struct session *session, int *ret_error)
{
    struct transfer transfer = {.fd = -1};

    swap_for_each(session, true, count_granule, &transfer);
    CUresult result = make_tables(&transfer);
    if (result == CUDA_SUCCESS)
        result = load_all(session, &transfer);
    end_tables(&transfer);
    *ret_error = transfer.error;
    return result;
}
