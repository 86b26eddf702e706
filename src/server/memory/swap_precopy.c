/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_precopy.h. */
#include "swap_precopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chunk_hasher.h"
#include "chunk_task.h"
#include "cleanup.h"
#include "fd.h"
#include "memory_state.h"
#include "swap_copy.h"

/* For granules that are made meanwhile. */
#define SPARE_ENTRIES 256u

struct swap_precopy {
    struct chunk_task task;
    struct chunk_region *regions;
    unsigned count;
    int fd;
    unsigned entries; /* that have a place in the file */
    uint64_t end;     /* of the contents in the file */
};

static struct swap_precopy *precopy_of(const struct session *session)
{
    return session->memory->precopy;
}

/* ---- what there is ---- */

/* The client may unmap memory of cuMemCreate at any time, so that is written when it stands still.
 */
static bool is_part(const struct granule *granule)
{
    return granule->kind != GRANULE_CREATED;
}

static CUresult count_granule(struct session *session, struct granule *granule, void *context)
{
    struct swap_precopy *precopy = context;

    precopy->entries++;
    if (!is_part(granule))
        return CUDA_SUCCESS;
    precopy->count++;
    precopy->end += granule->size;
    return CUDA_SUCCESS;
}

/* The next region, of which the count tells how many there are so far. */
static CUresult add_granule(struct session *session, struct granule *granule, void *context)
{
    struct swap_precopy *precopy = context;
    uint64_t chunks = swap_file_chunks(granule->size);
    struct chunk_region *region = &precopy->regions[precopy->count];

    if (!is_part(granule))
        return CUDA_SUCCESS;
    precopy->count++;
    *region = (struct chunk_region){.device = session_device(session, granule->part),
                                    .address = granule->address,
                                    .size = granule->size,
                                    .fd = precopy->fd,
                                    .offset = precopy->end,
                                    .hashes = calloc(chunks, sizeof(*region->hashes)),
                                    .versions = calloc(chunks, sizeof(*region->versions))};
    precopy->end += granule->size;
    return region->hashes && region->versions ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool lay_out(struct session *session, struct swap_precopy *precopy)
{
    swap_for_each(session, SWAP_HERE, count_granule, precopy);
    precopy->entries += SPARE_ENTRIES;
    precopy->regions = calloc(precopy->count + 1, sizeof(*precopy->regions));
    if (!precopy->regions || !precopy->count ||
        swap_file_begin(precopy->fd, precopy->entries, precopy->end, &precopy->end))
        return false;
    precopy->count = 0;
    return swap_for_each(session, SWAP_HERE, add_granule, precopy) == CUDA_SUCCESS;
}

static void destroy(struct swap_precopy *precopy)
{
    for (unsigned i = 0; precopy->regions && i < precopy->count; i++) {
        free(precopy->regions[i].hashes);
        free(precopy->regions[i].versions);
    }
    free(precopy->regions);
    fd_close(&precopy->fd);
    free(precopy);
}

/* ---- begin and end ---- */

static struct swap_precopy *make(int fd)
{
    struct swap_precopy *precopy = calloc(1, sizeof(*precopy));

    if (precopy)
        precopy->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return precopy;
}

/* Else all of it would be on its way to the disk while the client stands still. */
static int sync_file(void *context)
{
    const struct swap_precopy *precopy = context;

    return swap_file_sync(precopy->fd);
}

static int start_thread(struct session *session, struct swap_precopy *precopy)
{
    const struct chunk_order order = {
        .session = session, .out = true, .regions = precopy->regions, .count = precopy->count};

    precopy->task.ending = sync_file;
    precopy->task.context = precopy;
    return chunk_task_begin(&precopy->task, &order);
}

bool swap_precopy_begin(struct session *session, int fd)
{
    swap_precopy_end(session);
    if (!chunk_hasher_is_loaded(&session->server->memory->hasher))
        return false;
    struct swap_precopy *precopy = make(fd);
    if (!precopy)
        return false;
    if (precopy->fd < 0 || !lay_out(session, precopy) || start_thread(session, precopy)) {
        destroy(precopy);
        return false;
    }
    session->memory->precopy = precopy;
    return true;
}

bool swap_precopy_runs(const struct session *session)
{
    const struct swap_precopy *precopy = precopy_of(session);

    return precopy && !chunk_task_is_done(&precopy->task);
}

void swap_precopy_end(struct session *session)
{
    struct swap_precopy *precopy = precopy_of(session);

    if (!precopy)
        return;
    chunk_task_cancel(&precopy->task);
    session->memory->precopy = NULL;
    destroy(precopy);
}

/* ---- what it has ---- */

static struct chunk_region *find_region(const struct swap_precopy *precopy, uint64_t address)
{
    for (unsigned i = 0; i < precopy->count; i++)
        if (precopy->regions[i].address == address)
            return &precopy->regions[i];
    return NULL;
}

static bool is_same_file(int a, int b)
{
    struct stat one, other;

    return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

void swap_precopy_forget(struct session *session, const struct granule *granule)
{
    struct swap_precopy *precopy = precopy_of(session);
    struct chunk_region *region = precopy ? find_region(precopy, granule->address) : NULL;

    if (!region)
        return;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&precopy->task.watch.lock);
    region->is_gone = true;
}

int swap_precopy_result(const struct session *session, int fd, uint64_t *ret_offset,
                        unsigned *ret_entries)
{
    const struct swap_precopy *precopy = precopy_of(session);

    if (!precopy || (precopy->task.result != CUDA_SUCCESS && !precopy->task.error) ||
        !is_same_file(precopy->fd, fd))
        return -ENOENT;
    *ret_offset = precopy->end;
    *ret_entries = precopy->entries;
    return precopy->task.error;
}

bool swap_precopy_find(const struct session *session, uint64_t address, uint64_t size,
                       struct precopied *ret_precopied)
{
    const struct chunk_region *region = find_region(precopy_of(session), address);

    if (!region || region->is_gone || region->size != size)
        return false;
    *ret_precopied = (struct precopied){region->offset, region->hashes, region->versions};
    return true;
}
