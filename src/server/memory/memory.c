/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that belong to a client, and its limits of device memory. */
#include "memory_state.h"

#include <stdlib.h>

#include "device_granule.h"
#include "host_memory.h"
#include "ipc_memory.h"
#include "log.h"
#include "quota.h"
#include "server_dispatch.h"
#include "swap_precopy.h"
#include "swap_transfer.h"
#include "vmm.h"

CUresult memory_allow(struct session *session, const struct granule *like)
{
    if (!quota_allows(session, QUOTA_RANGES, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct granule *granule = malloc(sizeof(*granule));
    if (!granule)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *granule = *like;
    list_init(&granule->link);
    if (ranges_add(&session->memory->extents, granule->address, granule->size, granule)) {
        free(granule);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    quota_add(session, QUOTA_RANGES, 1);
    return CUDA_SUCCESS;
}

/* Removes the range from the client's. The caller keeps its description. */
static void forget_extent(struct session *session, uint64_t address)
{
    session->memory->generation++;
    ranges_remove(&session->memory->extents, address, NULL);
    quota_note(session, QUOTA_RANGES, session->memory->extents.count);
}

void memory_forbid(struct session *session, uint64_t address)
{
    const struct range *range = ranges_find(&session->memory->extents, address);
    struct granule *granule = range && range->start == address ? range->value : NULL;

    forget_extent(session, address);
    free(granule);
}

uint64_t memory_generation(const struct session *session)
{
    return session->memory->generation;
}

uint64_t memory_exchanges(const struct session *session)
{
    return session->memory->exchanges;
}

struct granule *memory_granule_at(const struct session *session, uint64_t address)
{
    const struct range *range = ranges_find(&session->memory->extents, address);

    return range ? range->value : NULL;
}

bool memory_covers(const struct session *session, uint64_t address, uint64_t size)
{
    uint64_t end;

    if (__builtin_add_overflow(address, size, &end))
        return false;
    while (address < end) {
        const struct granule *granule = memory_granule_at(session, address);
        if (!granule)
            return false;
        address = granule->address + granule->size;
    }
    return true;
}

static bool is_reached(const struct granule *granule, const struct device *device)
{
    switch (granule->kind) {
    case GRANULE_SHARED:
    case GRANULE_HOST:
        return true;
    case GRANULE_DEVICE:
    case GRANULE_GLOBAL:
        return granule->part == (unsigned)device->ordinal;
    default:
        return false;
    }
}

bool memory_is_reached(const struct session *session, const struct device *device, uint64_t address,
                       uint64_t size)
{
    for (uint64_t end = address + size; address < end;) {
        const struct granule *granule = memory_granule_at(session, address);
        if (!granule || !is_reached(granule, device))
            return false;
        address = granule->address + granule->size;
    }
    return true;
}

/* Whether the range is one to be visited; false in *ret_whole when it cannot be. */
static bool is_visited(const struct granule *granule, const struct device *device, bool with_host,
                       bool *ret_whole)
{
    bool is_own = granule->part == (unsigned)device->ordinal;

    switch (granule->kind) {
    case GRANULE_DEVICE:
        *ret_whole &= !is_own || !granule->swapped;
        return is_own && !granule->swapped;
    case GRANULE_MAPPED:
        return is_own;
    case GRANULE_HOST:
        return with_host;
    case GRANULE_IMPORTED:
        *ret_whole = false;
        return false;
    default:
        return false;
    }
}

bool memory_visit(struct session *session, const struct device *device, bool with_host,
                  memory_visitor *visit, void *context)
{
    const struct ranges *extents = &session->memory->extents;
    bool is_whole = vmm_is_reached(session, (unsigned)device->ordinal);

    for (size_t i = 0; i < extents->count && is_whole; i++) {
        const struct granule *granule = extents->sorted[i].value;

        if (is_visited(granule, device, with_host, &is_whole))
            visit(context, granule->address, granule->size);
    }
    return is_whole;
}

/* Once for each client and device, since a client may cross its limit as often as it likes. */
static void warn_of_soft_limit(struct session *session, unsigned device)
{
    struct device_usage *usage = &session->memory->device[device];
    uint64_t soft = session->limits.memory_soft[device];

    if (!soft || usage->used <= soft || usage->is_over_soft)
        return;
    usage->is_over_soft = true;
    log_line("Client " CLIENT_FORMAT " has more than its soft limit of %llu MiB of device %u "
             "(dmem.min of its control group)",
             CLIENT_ARGS(session), (unsigned long long)(soft >> 20), device);
}

/* Only the session's thread charges, so the limit needs no lock. */
bool memory_charge(struct session *session, unsigned device, uint64_t size)
{
    uint64_t limit = session->limits.memory[device];
    uint64_t used = session->memory->device[device].used;

    if (limit && (size > limit || used > limit - size)) {
        session->memory->refused++;
        session_log_error(session,
                          "out of memory: it has %llu MiB of device %u, wants %llu KiB more, "
                          "and its limit is %llu MiB",
                          (unsigned long long)(used >> 20), device,
                          (unsigned long long)(size >> 10), (unsigned long long)(limit >> 20));
        return false;
    }
    if (!joint_memory_reserve(session, device, size)) {
        session->memory->refused++;
        return false;
    }
    memory_charge_again(session, device, size);
    warn_of_soft_limit(session, device);
    return true;
}

void memory_charge_again(struct session *session, unsigned device, uint64_t size)
{
    struct device_usage *usage = &session->memory->device[device];

    usage->used += size;
    if (usage->used > usage->peak)
        usage->peak = usage->used;
    joint_memory_note(session, device);
}

void memory_refund(struct session *session, unsigned device, uint64_t size)
{
    session->memory->device[device].used -= size;
    joint_memory_note(session, device);
}

bool memory_may_export(struct session *session, unsigned device, uint64_t size)
{
    uint64_t limit = session_limits_tightest(&session->limits, device);
    uint64_t percent = quota(QUOTA_KEPT_MEMORY), most;
    uint64_t *given = &session->memory->device[device].given;

    if (__builtin_mul_overflow(limit, percent, &most))
        most = UINT64_MAX;
    most /= 100;
    if (limit && (size > most || *given > most - size))
        return false;
    *given += size;
    return true;
}

CUresult memory_grant(const struct session *session, unsigned device, uint64_t address,
                      uint64_t size)
{
    uint64_t devices = session->memory->device[device].reached_by | 1ull << device;
    CUmemAccessDesc access[SERVER_MAX_DEVICES];
    size_t count = 0;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (devices >> i & 1)
            access[count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, (int)i},
                                                CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return driver.cuMemSetAccess(address, size, access, count);
}

bool memory_reclaim_unused(struct session *session, const struct device *device)
{
    const struct server_memory *memory = session->server->memory;
    bool any = false;

    for (unsigned i = 0; i < memory->reclaimer_count; i++)
        any |= memory->reclaimers[i](session, device);
    return any;
}

CUresult memory_create(struct session *session, const struct device *device, uint64_t size,
                       const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *ret_handle)
{
    CUresult result = driver.cuMemCreate(ret_handle, size, prop, 0);

    if (result == CUDA_ERROR_OUT_OF_MEMORY && memory_reclaim_unused(session, device))
        result = driver.cuMemCreate(ret_handle, size, prop, 0);
    return result;
}

/* What memory_create_with_room() creates. */
struct creation {
    uint64_t size;
    const CUmemAllocationProp *prop;
    CUmemGenericAllocationHandle *handle;
};

static CUresult attempt_creation(struct session *session, void *context)
{
    const struct creation *creation = context;

    return driver.cuMemCreate(creation->handle, creation->size, creation->prop, 0);
}

static CUresult attempt_or_reclaim(struct session *session, const struct device *device,
                                   memory_attempt *attempt, void *context)
{
    CUresult result = attempt(session, context);

    return result == CUDA_ERROR_OUT_OF_MEMORY && memory_reclaim_unused(session, device)
               ? attempt(session, context)
               : result;
}

CUresult memory_attempt_with_room(struct session *session, const struct device *device,
                                  uint64_t size, memory_attempt *attempt, void *context)
{
    memory_room_maker *make_room = session->server->memory->make_room;
    CUresult result = attempt_or_reclaim(session, device, attempt, context);

    return result == CUDA_ERROR_OUT_OF_MEMORY && make_room
               ? make_room(session, device, size, attempt, context)
               : result;
}

CUresult memory_create_with_room(struct session *session, const struct device *device,
                                 uint64_t size, const CUmemAllocationProp *prop,
                                 CUmemGenericAllocationHandle *ret_handle)
{
    struct creation creation = {size, prop, ret_handle};

    return memory_attempt_with_room(session, device, size, attempt_creation, &creation);
}

static void release_granule(struct session *session, struct granule *granule)
{
    if (granule->kind == GRANULE_DEVICE)
        device_granule_end(session, granule);
    if (granule->kind == GRANULE_HOST)
        host_memory_retire(session, granule);
    else
        free(granule);
}

CUresult serve_fnGranuleRelease(struct session *session, const struct wire_fnGranuleRelease *in)
{
    struct granule *granule = memory_granule_at(session, in->address);

    if (!granule || granule->address != in->address ||
        (granule->kind != GRANULE_DEVICE && granule->kind != GRANULE_HOST)) {
        session_log_error(session, "fnGranuleRelease: no granule begins at %#llx",
                          (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory_is_awaited(session, "fnGranuleRelease", granule->address, granule->size))
        return CUDA_ERROR_INVALID_VALUE;
    forget_extent(session, in->address);
    if (granule->kind == GRANULE_DEVICE)
        device_granule_revoke(granule);
    release_granule(session, granule);
    return CUDA_SUCCESS;
}

bool memory_lends(const struct session *session, const struct module *module)
{
    const struct ranges *extents = &session->memory->extents;

    for (size_t i = 0; i < extents->count; i++) {
        const struct granule *granule = extents->sorted[i].value;

        if (granule->module == module)
            return true;
    }
    return false;
}

void memory_forget_module(struct session *session, const struct module *module)
{
    uint64_t address = 0;
    const struct range *range;

    while ((range = ranges_next(&session->memory->extents, address))) {
        struct granule *granule = range->value;
        address = range->start + 1;
        if (granule->module != module)
            continue;
        forget_extent(session, granule->address);
        free(granule);
    }
}

static void release_granules(struct session *session)
{
    const struct range *range;

    while ((range = ranges_next(&session->memory->extents, 0))) {
        struct granule *granule = range->value;
        forget_extent(session, granule->address);
        release_granule(session, granule);
    }
    ranges_fini(&session->memory->extents);
}

void memory_release_all(struct session *session)
{
    swap_precopy_end(session);
    swap_writing_cancel(session);
    ipc_memory_close_all(session);
    release_granules(session);
    device_granules_end_spare(session);
    device_copies_release(session);
}

/* Free is the rest of the client's limits, but not more than the device's free memory. */
CUresult serve_cuMemGetInfo_v2(struct session *session, const struct wire_cuMemGetInfo_v2 *in,
                               struct wire_cuMemGetInfo_v2_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuMemGetInfo", in->device);
    size_t free_bytes = 0, total = 0;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = session_enter(session, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetInfo_v2(&free_bytes, &total);
    if (result != CUDA_SUCCESS)
        return result;

    uint64_t limit = session->limits.memory[in->device];
    uint64_t used = session->memory->device[in->device].used;
    uint64_t left = limit > used ? limit - used : 0;
    ret_out->free = limit && left < free_bytes ? left : free_bytes;
    left = joint_memory_left(session, in->device);
    ret_out->free = left < ret_out->free ? left : ret_out->free;
    ret_out->total = session_limits_shown_total(&session->limits, in->device, total);
    return CUDA_SUCCESS;
}
