/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of clients that make granules. These are of new memory, of memory from another server, and
 * of a file with the contents of a granule that was suspended.
 */
#include "allocation_place.h"
#include "attach.h"
#include "blob.h"
#include "cleanup.h"
#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "server_dispatch.h"
#include "swap.h"
#include "swap_file.h"

static CUresult check_request(struct session *session, const char *call, uint32_t index,
                              uint64_t size, const struct device **ret_device)
{
    const struct device *device = session_find_device(session, call, index);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!size || size % device->record.granularity) {
        session_log_error(session, "%s: size %llu is not a multiple of %llu", call,
                          (unsigned long long)size, (unsigned long long)device->record.granularity);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret_device = device;
    return CUDA_SUCCESS;
}

CUresult serve_fnGranuleCreate(struct session *session, const struct wire_fnGranuleCreate *in,
                               struct wire_fnGranuleCreate_reply *ret_out)
{
    const struct device *device;
    struct granule granule;
    CUresult result = check_request(session, "fnGranuleCreate", in->device, in->size, &device);

    if (result != CUDA_SUCCESS)
        return result;
    if (in->room < in->size || in->address % device->record.granularity)
        return CUDA_ERROR_INVALID_VALUE;
    granule = device_granule_of(device, in->size, in->host);
    granule.address = in->address;
    session->window->is_divided |= in->address || in->room > in->size;
    result = device_granule_create(session, device, -1, in->room, &granule);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->address = granule.address;
    return device_granule_send(session, device_granule_find(session, granule.address));
}

CUresult serve_fnDevicePart(struct session *session, const struct wire_fnDevicePart *in)
{
    const unsigned count = session->server->devices.count;

    if (in->device >= count || in->part >= count)
        return CUDA_ERROR_INVALID_DEVICE;
    session->window->part_of[in->device] = in->part;
    return CUDA_SUCCESS;
}

static CUresult enter_saved(struct session *session, struct granule *granule, int file)
{
    CUresult result = swap_adopt(session, granule, file);

    if (result == CUDA_SUCCESS) {
        result = memory_allow(session, granule);
        if (result != CUDA_SUCCESS)
            swap_forget(session, granule);
    }
    if (result != CUDA_SUCCESS)
        window_unplace(session->window, granule->address);
    return result;
}

/* The client was suspended, and stays so until it is resumed: program_suspend.h. */
static CUresult adopt_saved(struct session *session, const struct device *device,
                            struct granule *granule, int file)
{
    CUresult result = session_enter(session, device);

    if (result == CUDA_SUCCESS)
        result = device_granule_take_place(session, device, granule->size, granule);
    if (result != CUDA_SUCCESS)
        return result;
    granule->exported = false;
    return enter_saved(session, granule, file);
}

static CUresult adopt_granule(struct session *session, const struct wire_fnGranuleAdopt *in, int fd)
{
    const struct device *device;
    struct granule granule;
    CUresult result = check_request(session, "fnGranuleAdopt", in->device, in->size, &device);

    if (result != CUDA_SUCCESS)
        return result;
    bool is_memory = allocation_could_be_memory(fd),
         is_saved = !is_memory && !in->host && !swap_file_check(fd);
    if (!in->address || in->address % device->record.granularity || (!is_memory && !is_saved)) {
        session_log_error(
            session, "fnGranuleAdopt: %#llx is not a valid place, or its descriptor is not memory",
            (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    granule = device_granule_of(device, in->size, in->host);
    granule.address = in->address;
    granule.exported = true;
    session->window->is_divided = true;
    if (is_saved)
        return adopt_saved(session, device, &granule, fd);
    session->memory->device[in->device].given += in->size;
    return device_granule_create(session, device, fd, in->size, &granule);
}

CUresult serve_fnGranuleAdopt(struct session *session, const struct wire_fnGranuleAdopt *in)
{
    _cleanup_fd_ int fd = -1;
    CUresult result = blob_take_fd(session, in->blob, &fd);

    if (result == CUDA_SUCCESS)
        result = adopt_granule(session, in, fd);
    if (result != CUDA_SUCCESS)
        return result;
    return device_granule_lend(session, device_granule_find(session, in->address), fd);
}
