/* SPDX-License-Identifier: Apache-2.0 */
/* See device_copy.h. Memory goes from device to device where the driver lets one reach the other.
 * Otherwise it goes through page-locked buffers, of which half is filled while the other half is
 * emptied. */
#include "device_copy.h"

#include <stdlib.h>

#include "allocation_place.h"
#include "device_granule.h"
#include "fd.h"
#include "feature.h"
#include "log.h"
#include "memory_state.h"
#include "swap.h"
#include "swap_copy.h"
#include "swap_staging.h"

#define HALF (SWAP_BUFFERS / 2 * (uint64_t)SWAP_BUFFER)

struct device_copy {
    const struct device *from, *to;
    CUstream out, in;       /* of `from` and `to` */
    unsigned char *buffers; /* NULL = the devices reach each other */
    uint64_t bytes;
};

/* Where the new memory is mapped while it is written. */
struct target {
    CUmemGenericAllocationHandle handle;
    uint64_t address, size;
};

/* ---- the contents ---- */

static bool reaches(const struct device *from, const struct device *to)
{
    return from->record.peers >> to->ordinal & 1 && !feature_is_off(FEATURE_PEER_COPIES);
}

static CUresult take_buffers(struct session *session, struct device_copy *copy)
{
    copy->buffers = swap_staging_take(&session->server->memory->swap_staging);
    return copy->buffers ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult wait_in(struct session *session, const struct device *device, CUstream stream)
{
    CUresult result = session_visit(session, device);

    return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(stream) : result;
}

static CUresult copy_in(struct session *session, const struct device *device, CUstream stream,
                        CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    CUresult result = session_visit(session, device);

    return result == CUDA_SUCCESS ? driver.cuMemcpyAsync(dst, src, size, stream) : result;
}

/* No copy crosses a border between buffers, for these are locked apart. */
static CUresult copy_pieces(struct session *session, const struct device *device, CUstream stream,
                            CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t at = 0; at < size && result == CUDA_SUCCESS; at += SWAP_BUFFER) {
        uint64_t left = size - at;
        result = copy_in(session, device, stream, dst + at, src + at,
                         left < SWAP_BUFFER ? left : SWAP_BUFFER);
    }
    return result;
}

/* Into one half, and on from there once the other half has been emptied. */
static CUresult copy_half(struct session *session, const struct device_copy *copy, CUdeviceptr dst,
                          CUdeviceptr src, uint64_t at, uint64_t size)
{
    CUdeviceptr half = (uintptr_t)copy->buffers + (at / HALF % 2 ? HALF : 0);
    CUresult result = copy_pieces(session, copy->from, copy->out, half, src + at, size);

    if (result == CUDA_SUCCESS)
        result = wait_in(session, copy->from, copy->out);
    if (result == CUDA_SUCCESS)
        result = wait_in(session, copy->to, copy->in);
    return result == CUDA_SUCCESS ? copy_pieces(session, copy->to, copy->in, dst + at, half, size)
                                  : result;
}

static CUresult copy_by_host(struct session *session, const struct device_copy *copy,
                             CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    CUresult result = CUDA_SUCCESS;

    for (uint64_t at = 0; at < size && result == CUDA_SUCCESS && !session->stop; at += HALF)
        result = copy_half(session, copy, dst, src, at, size - at < HALF ? size - at : HALF);
    return result == CUDA_SUCCESS ? wait_in(session, copy->to, copy->in) : result;
}

static CUresult copy_contents(struct session *session, const struct device_copy *copy,
                              CUdeviceptr dst, CUdeviceptr src, uint64_t size)
{
    if (copy->buffers)
        return copy_by_host(session, copy, dst, src, size);
    CUresult result = copy_in(session, copy->from, copy->out, dst, src, size);
    return result == CUDA_SUCCESS ? wait_in(session, copy->from, copy->out) : result;
}

/* ---- the memory ---- */

/* Where the driver lets the one device not reach the other's memory after all, all goes through the
 * buffers from now on. */
static CUresult grant_from(struct session *session, struct device_copy *copy,
                           const struct target *target)
{
    CUresult result =
        copy->buffers ? CUDA_SUCCESS : device_grant(copy->from, target->address, target->size);

    if (result == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    session_log(session, ": device %d does not reach memory of device %d: %s", copy->from->ordinal,
                copy->to->ordinal, driver_error_name(result));
    return take_buffers(session, copy);
}

static CUresult map_target(struct session *session, struct device_copy *copy,
                           const struct target *target)
{
    CUresult result = device_map(copy->to, target->handle, target->address, target->size);

    if (result != CUDA_SUCCESS)
        return result;
    result = grant_from(session, copy, target);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(target->address, target->size);
    return result;
}

static CUresult fill_mapped(struct session *session, struct device_copy *copy,
                            const struct granule *granule, struct target *target)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    CUresult result =
        reserve_area_take(area, 0, target->size, RESERVE_GRANULARITY, &target->address);

    if (result != CUDA_SUCCESS)
        return result;
    result = map_target(session, copy, target);
    if (result == CUDA_SUCCESS) {
        result = copy_contents(session, copy, target->address, granule->address, granule->size);
        driver.cuMemUnmap(target->address, target->size);
    }
    reserve_area_give_back(area, target->address, target->size);
    return result;
}

/* Takes the copy, and releases it in any case. */
static CUresult hold_copy(struct session *session, CUmemGenericAllocationHandle handle)
{
    struct device_copies *copies = &session->memory->copies;

    if (copies->count == copies->capacity) {
        unsigned capacity = 2 * copies->capacity + 64;
        void *handles = realloc(copies->handles, capacity * sizeof(*copies->handles));

        if (!handles) {
            driver.cuMemRelease(handle);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        copies->handles = handles;
        copies->capacity = capacity;
    }
    copies->handles[copies->count++] = handle;
    return CUDA_SUCCESS;
}

void device_copies_release(struct session *session)
{
    struct device_copies *copies = &session->memory->copies;

    while (copies->count)
        driver.cuMemRelease(copies->handles[--copies->count]);
    free(copies->handles);
    memory_refund(session, copies->device, copies->charged);
    *copies = (struct device_copies){.handles = NULL};
}

/* The copy outlives the session by the descriptor in the client's inbox. */
static CUresult lend_target(const struct granule *granule, const struct target *target)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = driver.cuMemExportToShareableHandle(
        &fd, target->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (result == CUDA_SUCCESS && revocable_fill(&granule->kept, fd))
        result = CUDA_ERROR_OPERATING_SYSTEM;
    return result;
}

static CUresult make_target(struct session *session, const struct device_copy *copy,
                            struct target *target)
{
    const CUmemAllocationProp prop = device_memory_properties(copy->to);
    CUresult result = session_visit(session, copy->to);

    return result == CUDA_SUCCESS
               ? memory_create(session, copy->to, target->size, &prop, &target->handle)
               : result;
}

static CUresult copy_granule(struct session *session, struct granule *granule, void *context)
{
    struct device_copy *copy = context;
    struct target target = {.size = granule->size};

    if ((int)granule->part != copy->from->ordinal)
        return CUDA_SUCCESS;
    CUresult result = make_target(session, copy, &target);
    if (result != CUDA_SUCCESS)
        return result;
    result = fill_mapped(session, copy, granule, &target);
    if (result == CUDA_SUCCESS)
        result = lend_target(granule, &target);
    CUresult held = hold_copy(session, target.handle);
    if (result == CUDA_SUCCESS)
        result = held;
    copy->bytes += granule->size;
    return result;
}

/* ---- all of it ---- */

static CUresult open_stream(struct session *session, const struct device *device,
                            CUstream *ret_stream)
{
    CUresult result = session_visit(session, device);

    return result == CUDA_SUCCESS
               ? driver.cuStreamCreateWithPriority(ret_stream, CU_STREAM_NON_BLOCKING, 0)
               : result;
}

static void close_stream(struct session *session, const struct device *device, CUstream stream)
{
    if (stream && session_visit(session, device) == CUDA_SUCCESS)
        driver.cuStreamDestroy_v2(stream);
}

static CUresult open_way(struct session *session, struct device_copy *copy)
{
    CUresult result = open_stream(session, copy->from, &copy->out);

    if (result == CUDA_SUCCESS)
        result = open_stream(session, copy->to, &copy->in);
    return result != CUDA_SUCCESS || reaches(copy->from, copy->to) ? result
                                                                   : take_buffers(session, copy);
}

static void close_way(struct session *session, const struct device_copy *copy)
{
    close_stream(session, copy->from, copy->out);
    close_stream(session, copy->to, copy->in);
    if (copy->buffers)
        swap_staging_give(&session->server->memory->swap_staging, copy->buffers);
}

static CUresult copy_all(struct session *session, struct device_copy *copy)
{
    CUresult result = swap_for_each(session, SWAP_HERE, granule_open, NULL);

    if (result == CUDA_SUCCESS)
        result = open_way(session, copy);
    if (result == CUDA_SUCCESS)
        result = swap_for_each(session, SWAP_HERE, copy_granule, copy);
    close_way(session, copy);
    swap_for_each(session, SWAP_HERE, granule_close, NULL);
    return result;
}

static enum move_obstacle obstacle_of(struct session *session, CUresult result)
{
    session_check(session, result);
    session_log(session, ": its memory cannot be copied to another device: %s",
                driver_error_name(result));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? OBSTACLE_DEVICE_MEMORY : OBSTACLE_COPY;
}

enum move_obstacle device_copies_make(struct session *session, const struct device *from,
                                      const struct device *to)
{
    struct device_copy copy = {.from = from, .to = to};
    uint64_t size = session->memory->device[from->ordinal].used;

    if (swap_obstacle(session) != SUSPEND_OK)
        return OBSTACLE_SHARED;
    if (!memory_charge(session, (unsigned)to->ordinal, size))
        return OBSTACLE_DEVICE_MEMORY;
    session->memory->copies.device = (unsigned)to->ordinal;
    session->memory->copies.charged = size;
    CUresult result = copy_all(session, &copy);
    if (result == CUDA_SUCCESS) {
        session_log(session, ": %llu MiB are copied from device %d to device %d%s",
                    (unsigned long long)(copy.bytes >> 20), from->ordinal, to->ordinal,
                    copy.buffers ? " through host memory" : "");
        return OBSTACLE_NONE;
    }
    device_copies_drop(session, from);
    return obstacle_of(session, result);
}

static CUresult drop_copy(struct session *session, struct granule *granule, void *context)
{
    const struct device *from = context;

    if ((int)granule->part == from->ordinal && granule->kept.inbox >= 0)
        revocable_keep_first(&granule->kept);
    return CUDA_SUCCESS;
}

void device_copies_drop(struct session *session, const struct device *from)
{
    device_copies_release(session);
    swap_for_each(session, SWAP_HERE, drop_copy, (void *)from);
}
