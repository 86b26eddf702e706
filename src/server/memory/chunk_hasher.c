/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_hasher.h. */
#include "chunk_hasher.h"

#include <sys/mman.h>

#include "cleanup.h"
#include "clock.h"
#include "hash_kernel.h"
#include "log.h"
#include "own_kernel.h"
#include "page_lock.h"

/* Of 32 GiB. */
#define JOBS 16384u

/* Copies of all memory are what is done without hashes. */
#define TURN_NS (100 * NS_PER_MS)

/* No part of it crosses a border of page-locked chunks. */
struct hash_table {
    struct hash_job jobs[JOBS];
    struct chunk_hash *results[JOBS]; /* where the caller wants them */
    struct hash_job turn;             /* of nothing */
    unsigned char sample[HASH_CHUNK];
};

_Static_assert(sizeof(struct hash_table) <= PAGE_LOCK_CHUNK, "the table is locked at once");

void chunk_hasher_init(struct chunk_hasher *hasher, const struct page_locker *locker)
{
    *hasher = (struct chunk_hasher){.locker = locker};
    pthread_mutex_init(&hasher->lock, NULL);
}

void chunk_hasher_load(struct chunk_hasher *hasher, const struct devices *devices)
{
    for (unsigned i = 0; i < devices->count; i++)
        hasher->kernels[i] = hash_kernel_load(&devices->device[i]);
}

bool chunk_hasher_is_loaded(const struct chunk_hasher *hasher)
{
    return hasher->kernels[0] != NULL;
}

/* ---- the table ---- */

static void *map_aligned(void)
{
    char *memory = mmap(NULL, 2 * PAGE_LOCK_CHUNK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory + (-(uintptr_t)memory & (PAGE_LOCK_CHUNK - 1));
}

static CUresult make_table_locked(struct chunk_hasher *hasher)
{
    struct hash_table *table = hasher->has_failed ? NULL : map_aligned();

    if (table && page_lock_chunks(hasher->locker, table, sizeof(*table)) == CUDA_SUCCESS) {
        hasher->table = table;
        return CUDA_SUCCESS;
    }
    if (!hasher->has_failed)
        log_line("Memory that has not changed since it was evicted is copied again: the table of "
                 "its hashes cannot be page-locked");
    hasher->has_failed = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- a batch: as many jobs of one device as the table takes ---- */

struct batch {
    const struct device *device;
    CUfunction kernel;
    struct hash_table *table;
    enum hash_trust *trust;
    unsigned count;
};

static CUresult copy_sample(const struct batch *batch, CUstream stream)
{
    const struct hash_job *job = &batch->table->jobs[0];
    CUresult result =
        driver.cuMemcpyAsync((uintptr_t)batch->table->sample, job->address, job->words * 8, stream);

    return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(stream) : result;
}

static CUresult check_sample(const struct batch *batch)
{
    const struct hash_job *job = &batch->table->jobs[0];
    struct chunk_hash right = chunk_hash_of(batch->table->sample, job->words * 8);

    *batch->trust = chunk_hash_is_equal(&right, &job->hash) ? HASH_TRUSTED : HASH_WRONG;
    if (*batch->trust == HASH_TRUSTED)
        return CUDA_SUCCESS;
    log_line("Device %d: memory that has not changed since it was evicted is copied again: the "
             "device's hashes differ from the CPU's",
             batch->device->ordinal);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Of a kernel that reads nothing, and may write its result at any time. */
static CUresult await_turn(const struct batch *batch, CUstream stream)
{
    CUresult result = hash_kernel_launch(batch->kernel, &batch->table->turn, 1, stream);

    return result == CUDA_SUCCESS ? own_kernel_await(stream, TURN_NS) : result;
}

static CUresult hash_in_stream(const struct batch *batch, CUstream stream)
{
    CUresult result = await_turn(batch, stream);

    if (result == CUDA_SUCCESS)
        result = hash_kernel_launch(batch->kernel, batch->table->jobs, batch->count, stream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS || *batch->trust == HASH_TRUSTED)
        return result;
    result = copy_sample(batch, stream);
    return result == CUDA_SUCCESS ? check_sample(batch) : result;
}

static CUresult run_batch_locked(struct batch *batch)
{
    CUstream stream;
    CUresult result = batch->count ? device_enter(batch->device) : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS || !batch->count)
        return result;
    result = driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = hash_in_stream(batch, stream);
    driver.cuStreamDestroy_v2(stream);
    for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++)
        *batch->table->results[i] = batch->table->jobs[i].hash;
    batch->count = 0;
    return result;
}

/* ---- what is to be hashed ---- */

/* The batch is empty afterwards. */
static CUresult go_to_device_locked(struct chunk_hasher *hasher, struct batch *batch,
                                    const struct device *device)
{
    CUresult result = run_batch_locked(batch);

    batch->device = device;
    batch->kernel = hasher->kernels[device->ordinal];
    batch->trust = &hasher->trust[device->ordinal];
    if (result == CUDA_SUCCESS && (!batch->kernel || *batch->trust == HASH_WRONG))
        result = CUDA_ERROR_NOT_SUPPORTED;
    return result;
}

static void add_job(struct batch *batch, const struct hash_region *region, uint64_t at)
{
    uint64_t left = region->size - at, size = left < HASH_CHUNK ? left : HASH_CHUNK;

    batch->table->jobs[batch->count] = (struct hash_job){region->address + at, size / 8, {{0, 0}}};
    batch->table->results[batch->count++] = &region->hashes[at / HASH_CHUNK];
}

static CUresult add_region_locked(struct chunk_hasher *hasher, struct batch *batch,
                                  const struct hash_region *region)
{
    CUresult result = CUDA_SUCCESS;

    if (batch->device != region->device)
        result = go_to_device_locked(hasher, batch, region->device);
    for (uint64_t at = 0; at < region->size && result == CUDA_SUCCESS; at += HASH_CHUNK) {
        add_job(batch, region, at);
        if (batch->count == JOBS)
            result = run_batch_locked(batch);
    }
    return result;
}

CUresult chunk_hasher_run(struct chunk_hasher *hasher, const struct hash_region *regions,
                          unsigned count)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&hasher->lock);
    struct batch batch = {.device = NULL};
    CUresult result = CUDA_SUCCESS;

    if (!count)
        return CUDA_SUCCESS;
    if (!hasher->table) {
        result = device_enter(regions->device);
        if (result == CUDA_SUCCESS)
            result = make_table_locked(hasher);
    }
    batch.table = hasher->table;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = add_region_locked(hasher, &batch, &regions[i]);
    return result == CUDA_SUCCESS ? run_batch_locked(&batch) : result;
}
