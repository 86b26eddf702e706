/* SPDX-License-Identifier: Apache-2.0 */
/* See vmm_replay.h. No lock is taken: all threads are outside the library, or wait in it. */
#include "vmm_replay.h"

#include "client_socket.h"
#include "granule.h"
#include "vmm_tables.h"
#include "wire_calls.h"

/* Imported memory is the program's descriptor, any other is lent. */
bool vmm_physical_can_move(const struct physical *physical)
{
    if (!physical->is_made)
        return true;
    return physical->size ? granule_is_kept(physical->fd) : physical->fd >= 0;
}

static CUresult replay_reservation(const struct range *range)
{
    const struct wire_fnReserve in = {
        .from = range->start, .size = range->size, .alignment = RESERVE_GRANULARITY};
    struct wire_fnReserve_reply out;
    CUresult result = wire_fnReserve(&client->channel, &in, &out);

    return result == CUDA_SUCCESS && out.address != range->start ? CUDA_ERROR_MAP_FAILED : result;
}

static CUresult replay_reservations(void)
{
    const struct range *range = ranges_next(&vmm.reservations, 0);
    CUresult result = CUDA_SUCCESS;

    for (; range && result == CUDA_SUCCESS;
         range = ranges_next(&vmm.reservations, range->start + 1))
        result = replay_reservation(range);
    return result;
}

/* ---- physical memory ---- */

static CUresult import_again(const struct physical *physical)
{
    struct wire_cuMemImportFromShareableHandle in = {.handle = physical->handle};
    struct wire_cuMemImportFromShareableHandle_reply out;
    CUresult result = client_send_descriptor(physical->fd, 0, &in.blob);

    return result == CUDA_SUCCESS ? wire_cuMemImportFromShareableHandle(&client->channel, &in, &out)
                                  : result;
}

static CUresult adopt_memory(const void *context, int memory, int inbox)
{
    struct wire_fnAllocationAdopt in = *(const struct wire_fnAllocationAdopt *)context;
    CUresult result = client_send_descriptor(memory, in.size, &in.blob);

    if (result == CUDA_SUCCESS)
        result = wire_fnAllocationAdopt(&client->channel, &in);
    return result == CUDA_SUCCESS ? granule_receive_inbox(in.handle, inbox) : result;
}

static CUresult adopt(const struct physical *physical)
{
    const struct wire_fnAllocationAdopt in = {.handle = physical->handle,
                                              .device = physical->device->index,
                                              .shared = physical->shared,
                                              .size = physical->size};

    return granule_hand_on(physical->fd, adopt_memory, &in);
}

static void replay_physical(void *context, uint64_t handle, void *object)
{
    const struct physical *physical = object;
    CUresult *result = context;

    if (handle_type(handle) == WIRE_ALLOCATION && physical->is_made && *result == CUDA_SUCCESS)
        *result = physical->size ? adopt(physical) : import_again(physical);
}

static void check_physical(void *context, uint64_t handle, void *object)
{
    bool *is_whole = context;

    if (handle_type(handle) == WIRE_ALLOCATION)
        *is_whole &= vmm_physical_can_move(object);
}

bool vmm_is_whole(void)
{
    bool is_whole = true;

    handles_for_each(&client->handles, check_physical, &is_whole);
    return is_whole;
}

static void give_up_physical(void *context, uint64_t handle, void *object)
{
    const struct physical *physical = object;

    if (handle_type(handle) == WIRE_ALLOCATION && physical->is_made && physical->size)
        granule_give_up(physical->fd);
}

void vmm_give_up(void)
{
    handles_for_each(&client->handles, give_up_physical, NULL);
}

/* ---- mappings ---- */

static CUresult replay_access(const struct mapping *mapping, int ordinal)
{
    const struct wire_cuMemSetAccess in = {.ptr = mapping->address,
                                           .size = mapping->size,
                                           .device = client->devices[ordinal].index,
                                           .flags = mapping->access[ordinal]};

    return in.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? CUDA_SUCCESS
                                                     : wire_cuMemSetAccess(&client->channel, &in);
}

static CUresult replay_mapping(const struct mapping *mapping)
{
    const struct wire_cuMemMap in = {
        .handle = mapping->physical->handle, .ptr = mapping->address, .size = mapping->size};

    if (!mapping->is_made)
        return CUDA_SUCCESS;
    CUresult result = wire_cuMemMap(&client->channel, &in);
    for (int i = 0; i < client->device_count && result == CUDA_SUCCESS; i++)
        result = replay_access(mapping, i);
    return result;
}

static CUresult replay_mappings(void)
{
    const struct range *range = ranges_next(&vmm.mappings, 0);
    CUresult result = CUDA_SUCCESS;

    for (; range && result == CUDA_SUCCESS; range = ranges_next(&vmm.mappings, range->start + 1))
        result = replay_mapping(range->value);
    return result;
}

CUresult vmm_replay(void)
{
    CUresult result = replay_reservations();

    if (result == CUDA_SUCCESS)
        handles_for_each(&client->handles, replay_physical, &result);
    return result == CUDA_SUCCESS ? replay_mappings() : result;
}
