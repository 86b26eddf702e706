/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_snapshot.h. A device has one piece of memory for all of its regions. */
#include "swap_snapshot.h"

#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "device.h"
#include "memory_state.h"
#include "suspend.h"
#include "swap_file.h"

#define AWAIT_NS (30 * NS_PER_SEC)
#define PAUSE_NS (2 * NS_PER_MS)

struct part {
    uint64_t size; /* 0 = there is nothing of this device */
    uint64_t address;
    CUmemGenericAllocationHandle handle;
    CUstream stream;
    uint64_t used; /* by regions that have their place */
};

struct swap_snapshot {
    struct part parts[SERVER_MAX_DEVICES]; /* by ordinal */
};

/* ---- what there is to copy ---- */

static bool is_changed(const struct chunk_region *region, uint64_t chunk)
{
    return !region->unchanged || !region->unchanged[chunk];
}

static bool has_changed(const struct chunk_region *region)
{
    for (uint64_t i = 0; i < swap_file_chunks(region->size); i++)
        if (is_changed(region, i))
            return true;
    return false;
}

static struct part *part_of(struct swap_snapshot *snapshot, const struct chunk_region *region)
{
    return &snapshot->parts[region->device->ordinal];
}

/* The regions' places, in their order. */
static uint64_t next_place(struct part *part, const struct chunk_region *region)
{
    uint64_t place = part->address + part->used;

    part->used += region->size;
    return place;
}

/* ---- memory of a device ---- */

static bool is_enough(uint64_t size)
{
    size_t free_bytes = 0, total;

    return driver.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && size <= free_bytes / 2;
}

static CUresult map_somewhere(const struct session *session, const struct device *device,
                              struct part *part)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    CUresult result = reserve_area_take(area, 0, part->size, RESERVE_GRANULARITY, &part->address);

    if (result != CUDA_SUCCESS)
        return result;
    result = device_map(device, part->handle, part->address, part->size);
    if (result != CUDA_SUCCESS)
        reserve_area_give_back(area, part->address, part->size);
    return result;
}

/* A part without a size has nothing to end. */
static CUresult make_part(struct session *session, const struct device *device, struct part *part)
{
    const CUmemAllocationProp prop = device_memory_properties(device);
    const uint64_t size = part->size;

    part->size = 0;
    if (session_visit(session, device) != CUDA_SUCCESS || !is_enough(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = driver.cuMemCreate(&part->handle, size, &prop, 0);
    if (result != CUDA_SUCCESS)
        return result;
    part->size = size;
    result = map_somewhere(session, device, part);
    if (result != CUDA_SUCCESS) {
        driver.cuMemRelease(part->handle);
        part->size = 0;
    } else {
        session->server->memory->snapshots[device->ordinal].made++;
    }
    return result;
}

static void end_part(struct server *server, const struct part *part)
{
    driver.cuMemUnmap(part->address, part->size);
    driver.cuMemRelease(part->handle);
    reserve_area_give_back(&server->memory->reserve_area, part->address, part->size);
}

static CUresult make_parts(struct session *session, struct swap_snapshot *snapshot)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (snapshot->parts[i].size && result == CUDA_SUCCESS)
            result = make_part(session, session_device(session, i), &snapshot->parts[i]);
        else if (result != CUDA_SUCCESS)
            snapshot->parts[i].size = 0;
    return result;
}

/* ---- the copy ---- */

static uint64_t end_of_run(const struct chunk_region *region, uint64_t chunk)
{
    while (chunk < swap_file_chunks(region->size) && is_changed(region, chunk))
        chunk++;
    return chunk * SWAP_FILE_CHUNK < region->size ? chunk * SWAP_FILE_CHUNK : region->size;
}

static CUresult copy_region(const struct part *part, const struct chunk_region *region,
                            uint64_t place)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t at = 0, end; at < region->size && result == CUDA_SUCCESS; at = end) {
        end = end_of_run(region, at / SWAP_FILE_CHUNK);
        if (end > at)
            result = driver.cuMemcpyAsync(place + at, region->address + at, end - at, part->stream);
        else
            end = at + SWAP_FILE_CHUNK;
    }
    return result;
}

static CUresult copy_on_device(struct session *session, struct swap_snapshot *snapshot,
                               const struct chunk_region *region)
{
    struct part *part = part_of(snapshot, region);
    CUresult result = session_enter(session, region->device);

    if (result == CUDA_SUCCESS && !part->stream)
        result = driver.cuStreamCreateWithPriority(&part->stream, CU_STREAM_NON_BLOCKING, 0);
    return result == CUDA_SUCCESS ? copy_region(part, region, next_place(part, region)) : result;
}

/* Returns `result`, or the first error of a copy. */
static CUresult await_copies(struct session *session, struct swap_snapshot *snapshot,
                             CUresult result)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct part *part = &snapshot->parts[i];
        if (!part->stream || session_enter(session, session_device(session, i)))
            continue;
        CUresult ended = driver.cuStreamSynchronize(part->stream);
        driver.cuStreamDestroy_v2(part->stream);
        part->used = 0;
        if (result == CUDA_SUCCESS)
            result = ended;
    }
    session_check(session, result);
    return result;
}

static CUresult copy_all(struct session *session, struct swap_snapshot *snapshot,
                         const struct chunk_region *regions, unsigned count)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (has_changed(&regions[i]))
            result = copy_on_device(session, snapshot, &regions[i]);
    return await_copies(session, snapshot, result);
}

struct swap_snapshot *swap_snapshot_take(struct session *session, struct chunk_region *regions,
                                         unsigned count)
{
    struct swap_snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (!snapshot)
        return NULL;
    for (unsigned i = 0; i < count; i++)
        if (has_changed(&regions[i]))
            part_of(snapshot, &regions[i])->size += regions[i].size;
    CUresult result = make_parts(session, snapshot);
    if (result == CUDA_SUCCESS)
        result = copy_all(session, snapshot, regions, count);
    if (result != CUDA_SUCCESS) {
        swap_snapshot_end(session->server, snapshot);
        session->current = NULL; /* the thread may be in another device's context now */
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        if (has_changed(&regions[i]))
            regions[i].address = next_place(part_of(snapshot, &regions[i]), &regions[i]);
    return snapshot;
}

void swap_snapshot_end(struct server *server, struct swap_snapshot *snapshot)
{
    for (unsigned i = 0; i < server->devices.count; i++) {
        if (!snapshot->parts[i].size)
            continue;
        if (device_enter(&server->devices.device[i]) == CUDA_SUCCESS)
            end_part(server, &snapshot->parts[i]);
        server->memory->snapshots[i].ended++;
    }
    free(snapshot);
}

static void rest(struct session *session)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    session_set_at_rest(session, true);
    nanosleep(&pause, NULL);
    session_set_at_rest(session, false);
}

bool swap_snapshots_await(struct session *session, const struct device *device)
{
    const struct snapshot_count *count = &session->server->memory->snapshots[device->ordinal];
    uint64_t *seen = &session->memory->snapshots_ended[device->ordinal], before = *seen;
    uint64_t made = count->made, until = clock_ns() + AWAIT_NS;

    while (count->ended < made && !session->stop && clock_ns() < until)
        rest(session);
    *seen = count->ended;
    return *seen > before;
}
