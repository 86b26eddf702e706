/* SPDX-License-Identifier: Apache-2.0 */
#include "swap_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "chunk_hasher.h"
#include "chunk_task.h"
#include "cleanup.h"
#include "device_granule.h"
#include "fd.h"
#include "log.h"
#include "memory_state.h"
#include "suspend.h"
#include "swap_copy.h"
#include "swap_precopy.h"
#include "swap_snapshot.h"

/* The granules that are on their way, in the order of their addresses. */
struct transfer {
    int fd; /* of the file that is written; -1 = read from each granule's */
    struct chunk_region *regions;
    struct swap_entry *entries; /* of the regions */
    uint64_t *hashes;           /* of all their chunks */
    struct chunk_hash *now;     /* the same, of those that are compared */
    uint8_t *unchanged;
    uint64_t flags;         /* of the entries that are written */
    uint64_t offset;        /* in the file, behind the last region */
    uint64_t bytes, chunks; /* of all regions */
    bool is_precopied;      /* the file has contents from before the client stood still */
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

/* The place in the file stays, and the hashes count for chunks that have not changed. */
static bool add_precopied(const struct session *session, const struct granule *granule,
                          struct transfer *transfer)
{
    struct chunk_region *region = &transfer->regions[transfer->count];
    struct precopied precopied;

    if (!transfer->is_precopied ||
        !swap_precopy_find(session, granule->address, granule->size, &precopied))
        return false;
    region->offset = transfer->entries[transfer->count].offset = precopied.offset;
    region->rewrites = true;
    memcpy(region->hashes, precopied.hashes,
           swap_file_chunks(granule->size) * sizeof(*precopied.hashes));
    return true;
}

static CUresult add_granule(struct session *session, struct granule *granule, void *context)
{
    struct transfer *transfer = context;
    struct swap_entry entry = {.address = device_granule_key(granule),
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
    transfer->regions[transfer->count] =
        (struct chunk_region){.device = session_device(session, granule->part),
                              .address = granule->address,
                              .size = granule->size,
                              .fd = fd,
                              .offset = entry.offset,
                              .hashes = transfer->hashes + transfer->chunks};
    if (!add_precopied(session, granule, transfer))
        transfer->offset += granule->size;
    transfer->count++;
    transfer->chunks += swap_file_chunks(granule->size);
    return CUDA_SUCCESS;
}

static CUresult make_tables(struct transfer *transfer)
{
    transfer->regions = calloc(transfer->count + 1, sizeof(*transfer->regions));
    transfer->entries = calloc(transfer->count + 1, sizeof(*transfer->entries));
    transfer->hashes = calloc(transfer->chunks + 1, sizeof(*transfer->hashes));
    transfer->now = calloc(transfer->chunks + 1, sizeof(*transfer->now));
    transfer->unchanged = calloc(transfer->chunks + 1, sizeof(*transfer->unchanged));
    return transfer->regions && transfer->entries && transfer->hashes && transfer->now &&
                   transfer->unchanged
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The count is made first, and then the tables are filled. */
static CUresult fill_tables(struct session *session, struct transfer *transfer)
{
    transfer->count = 0;
    transfer->chunks = 0;
    return swap_for_each(session, transfer->fd < 0 ? SWAP_MOVING : SWAP_HERE, add_granule,
                         transfer);
}

static void end_tables(struct transfer *transfer)
{
    free(transfer->regions);
    free(transfer->entries);
    free(transfer->hashes);
    free(transfer->now);
    free(transfer->unchanged);
}

static CUresult move_all(struct session *session, struct transfer *transfer)
{
    const struct chunk_order order = {.session = session,
                                      .out = transfer->fd >= 0,
                                      .regions = transfer->regions,
                                      .count = transfer->count};

    return chunk_team_run(&order, &transfer->error);
}

static uint64_t hash_of(const struct chunk_region *region)
{
    return swap_file_hash(region->hashes, swap_file_chunks(region->size));
}

/* ---- into a file ---- */

/* Keeps what a pre-copy has written, if there is a place for all entries. */
static int begin_file(struct session *session, struct transfer *transfer)
{
    unsigned entries;

    if (swap_precopy_runs(session))
        swap_precopy_end(session);
    int error = swap_precopy_result(session, transfer->fd, &transfer->offset, &entries);

    transfer->is_precopied = !error && transfer->count <= entries;
    if (transfer->is_precopied || (error && error != -ENOENT))
        return error;
    return swap_file_begin(transfer->fd, transfer->count, transfer->bytes, &transfer->offset);
}

/* How many chunks of the region have not changed. */
static uint64_t compare_region(const struct session *session, const struct transfer *transfer,
                               struct chunk_region *region)
{
    uint64_t first = (uint64_t)(region->hashes - transfer->hashes), same = 0;
    struct precopied precopied;

    if (!swap_precopy_find(session, region->address, region->size, &precopied))
        return 0;
    for (uint64_t i = 0; i < swap_file_chunks(region->size); i++) {
        transfer->unchanged[first + i] =
            chunk_hash_is_equal(&transfer->now[first + i], &precopied.versions[i]);
        same += transfer->unchanged[first + i];
    }
    region->unchanged = &transfer->unchanged[first];
    return same;
}

/* Where there are no hashes, all is written again. */
static CUresult hash_now(struct session *session, const struct transfer *transfer)
{
    _cleanup_free_ struct hash_region *regions = calloc(transfer->count + 1, sizeof(*regions));
    unsigned count = 0;

    if (!regions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < transfer->count; i++) {
        const struct chunk_region *region = &transfer->regions[i];
        if (region->rewrites)
            regions[count++] =
                (struct hash_region){region->device, region->address, region->size,
                                     transfer->now + (region->hashes - transfer->hashes)};
    }
    CUresult result = chunk_hasher_run(&session->server->memory->hasher, regions, count);
    session->current = NULL; /* the thread may be in another device's context now */
    if (result != CUDA_SUCCESS)
        session_check(session, result);
    return result;
}

static void find_changes(struct session *session, struct transfer *transfer)
{
    uint64_t same = 0;

    if (!transfer->is_precopied || hash_now(session, transfer) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < transfer->count; i++)
        if (transfer->regions[i].rewrites)
            same += compare_region(session, transfer, &transfer->regions[i]);
    session_log(session, " has %llu of %llu MiB in the file that have not changed meanwhile",
                (unsigned long long)(same * SWAP_FILE_CHUNK >> 20),
                (unsigned long long)(transfer->bytes >> 20));
}

/* All but the contents, with those that have changed. */
static CUresult prepare(struct session *session, struct transfer *transfer)
{
    int error = begin_file(session, transfer);
    CUresult result = error ? fail_file(transfer, error) : fill_tables(session, transfer);

    if (result != CUDA_SUCCESS)
        return result;
    error = transfer->is_precopied ? swap_file_extend(transfer->fd, transfer->offset) : 0;
    if (error)
        return fail_file(transfer, error);
    find_changes(session, transfer);
    return CUDA_SUCCESS;
}

/* Any thread. 0 or -errno. */
static int complete(void *context)
{
    const struct transfer *transfer = context;

    for (unsigned i = 0; i < transfer->count; i++)
        transfer->entries[i].hash = hash_of(&transfer->regions[i]);
    return swap_file_complete(transfer->fd, transfer->entries, transfer->count);
}

static CUresult write_now(struct session *session, struct transfer *transfer)
{
    CUresult result = move_all(session, transfer);
    int error = result == CUDA_SUCCESS ? complete(transfer) : 0;

    return error ? fail_file(transfer, error) : result;
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

/* Tables and the file, up to the contents. */
static CUresult begin(struct session *session, struct transfer *transfer)
{
    swap_for_each(session, SWAP_HERE, count_granule, transfer);
    CUresult result = make_tables(transfer);
    if (result == CUDA_SUCCESS)
        result = prepare(session, transfer);
    swap_precopy_end(session);
    return result;
}

CUresult swap_save(struct session *session, const struct swap_saving *saving, int *ret_error)
{
    struct transfer transfer = begin_saving(saving);
    CUresult result = begin(session, &transfer);

    if (result == CUDA_SUCCESS)
        result = write_now(session, &transfer);
    if (result == CUDA_SUCCESS) {
        struct saved saved = {transfer.entries, saving->readable};
        result = swap_for_each(session, SWAP_HERE, give_copy, &saved);
    }
    end_tables(&transfer);
    *ret_error = transfer.error;
    return result;
}

/* ---- into a file while the client goes on ---- */

struct swap_writing {
    struct transfer transfer;
    struct server *server;
    struct swap_snapshot *snapshot; /* NULL = there is none, or none any more; while the task runs
                                     * its */
    struct chunk_task task;
    bool is_finished; /* the task */
};

static struct swap_writing *make_writing(int fd)
{
    struct swap_writing *writing = calloc(1, sizeof(*writing));

    if (!writing)
        return NULL;
    writing->transfer.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (writing->transfer.fd >= 0)
        return writing;
    free(writing);
    return NULL;
}

static void end_snapshot(struct swap_writing *writing)
{
    if (writing->snapshot)
        swap_snapshot_end(writing->server, writing->snapshot);
    writing->snapshot = NULL;
}

static void end_writing(struct session *session, struct swap_writing *writing)
{
    end_snapshot(writing);
    session->current = NULL; /* the thread may be in another device's context now */
    end_tables(&writing->transfer);
    fd_close(&writing->transfer.fd);
    free(writing);
    session->memory->writing = NULL;
}

static void finish_task(struct swap_writing *writing)
{
    if (!writing->is_finished)
        chunk_task_finish(&writing->task);
    writing->is_finished = true;
}

/* On the task's thread, when all has been read. The device has the memory back before the file is
 * on its disk. */
static int end_reading(void *context)
{
    struct swap_writing *writing = context;

    end_snapshot(writing);
    return complete(&writing->transfer);
}

/* False where all has to be written at once. */
static bool write_later(struct session *session, struct swap_writing *writing)
{
    const struct transfer *transfer = &writing->transfer;
    const struct chunk_order order = {
        .session = session, .out = true, .regions = transfer->regions, .count = transfer->count};

    writing->task.ending = end_reading;
    writing->task.context = writing;
    writing->server = session->server;
    if (!transfer->count)
        return false;
    writing->snapshot = swap_snapshot_take(session, transfer->regions, transfer->count);
    if (!writing->snapshot)
        return false;
    int error = chunk_task_begin(&writing->task, &order);
    if (error)
        session_log_error(session, "no thread for its checkpoint: %s", strerror(-error));
    return !error;
}

CUresult swap_writing_begin(struct session *session, int fd, int *ret_error)
{
    struct swap_writing *writing = make_writing(fd);

    *ret_error = 0;
    if (!writing)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = begin(session, &writing->transfer);
    if (result == CUDA_SUCCESS && write_later(session, writing)) {
        session->memory->writing = writing;
        return CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS)
        result = write_now(session, &writing->transfer);
    *ret_error = writing->transfer.error;
    end_writing(session, writing);
    return result;
}

bool swap_writing_runs(const struct session *session)
{
    const struct swap_writing *writing = session->memory->writing;

    return writing && !chunk_task_is_done(&writing->task);
}

CUresult swap_writing_end(struct session *session, int *ret_error)
{
    struct swap_writing *writing = session->memory->writing;

    *ret_error = 0;
    if (!writing)
        return CUDA_SUCCESS;
    finish_task(writing);
    CUresult result = writing->task.result;
    *ret_error = writing->task.error;
    end_writing(session, writing);
    session_check(session, result);
    return result;
}

/* False when it has none. */
static bool await_own(struct session *session)
{
    struct swap_writing *writing = session->memory->writing;

    if (!writing || writing->is_finished)
        return false;
    session_log(session, " waits for the file of its checkpoint, whose copy takes memory that it "
                         "needs");
    session_set_at_rest(session, true);
    finish_task(writing);
    session_set_at_rest(session, false);
    end_snapshot(writing);
    session->current = NULL; /* the thread may be in another device's context now */
    return true;
}

bool swap_writing_reclaim(struct session *session, const struct device *device)
{
    bool own = await_own(session), others = swap_snapshots_await(session, device);

    return (own || others) && session_enter(session, device) == CUDA_SUCCESS;
}

void swap_writing_cancel(struct session *session)
{
    struct swap_writing *writing = session->memory->writing;

    if (!writing)
        return;
    if (!writing->is_finished)
        chunk_task_cancel(&writing->task);
    end_writing(session, writing);
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

    swap_for_each(session, SWAP_MOVING, count_granule, &transfer);
    CUresult result = make_tables(&transfer);
    if (result == CUDA_SUCCESS)
        result = load_all(session, &transfer);
    end_tables(&transfer);
    *ret_error = transfer.error;
    return result;
}
