/* SPDX-License-Identifier: Apache-2.0 */
/* See vmm_reserve.h. */
#include "vmm_reserve.h"

#include <sys/mman.h>

#include "client_prototypes.h"
#include "client_vmm.h"
#include "cuda_pointer.h"
#include "page_reserve.h"
#include "wire_calls.h"

#define PLACES_TRIED 8

bool vmm_is_reserved_there(uint64_t address)
{
    VMM_LOCKED;
    return ranges_find(&vmm.reservations, address);
}

void vmm_describe_reservation_locked(struct cuda_pointer *pointer)
{
    const struct range *range = ranges_find(&vmm.reservations, pointer->address);

    if (!range)
        return;
    pointer->start = range->start;
    pointer->size = range->size;
}

void vmm_describe_reservation(struct cuda_pointer *pointer)
{
    if (!vmm_may_be_reserved(pointer->address))
        return;
    VMM_LOCKED;
    vmm_describe_reservation_locked(pointer);
}

bool vmm_reservation_contains_locked(uint64_t address, uint64_t size)
{
    const struct range *range = ranges_find(&vmm.reservations, address);

    return range && size <= range->size - (address - range->start);
}

static CUresult unreserve(uint64_t address)
{
    struct wire_fnUnreserve in = {.address = address};
    CUresult result;

    channel_lock(&client->channel);
    result = wire_fnUnreserve(&client->channel, &in);
    channel_unlock(&client->channel);
    return result;
}

static bool enter_reservation(uint64_t address, uint64_t size)
{
    if (!page_reserve(address, size))
        return false;
    if (ranges_add(&vmm.reservations, address, size, client) == 0)
        return true;
    munmap((void *)(uintptr_t)address, size);
    return false;
}

/* The server offers addresses that no client has. When they are taken in this process, it is asked
 * for others. */
static CUresult reserve_anywhere(struct wire_fnReserve *in, uint64_t *ret_address)
{
    struct wire_fnReserve_reply out;

    for (int i = 0; i < PLACES_TRIED; i++) {
        CUresult result = wire_fnReserve(&client->channel, in, &out);

        if (result != CUDA_SUCCESS)
            return result;
        if (out.address < RESERVE_FIRST || out.address >= RESERVE_END ||
            in->size > RESERVE_END - out.address)
            return CUDA_ERROR_MPS_RPC_FAILURE;
        if (enter_reservation(out.address, in->size)) {
            *ret_address = out.address;
            return CUDA_SUCCESS;
        }
        unreserve(out.address);
        in->from = out.address + in->size;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                    CUdeviceptr addr, unsigned long long flags)
{
    struct wire_fnReserve in;
    uint64_t address;
    CUresult result = client_error();

    if (alignment < RESERVE_GRANULARITY && (alignment & (alignment - 1)) == 0)
        alignment = RESERVE_GRANULARITY;
    if (size == 0 || size % RESERVE_GRANULARITY || alignment & (alignment - 1) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    VMM_LOCKED;
    in = (struct wire_fnReserve){.from = addr, .size = size, .alignment = alignment};
    result = reserve_anywhere(&in, &address);
    if (result == CUDA_SUCCESS)
        *ptr = address;
    return result;
}

CUresult client_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    const struct range *range, *next;
    VMM_LOCKED;

    range = ranges_find(&vmm.reservations, ptr);
    if (!range || range->start != ptr || range->size != size)
        return CUDA_ERROR_INVALID_VALUE;
    next = ranges_next(&vmm.mappings, ptr);
    if (next && next->start - ptr < size)
        return CUDA_ERROR_INVALID_VALUE;
    ranges_remove(&vmm.reservations, ptr, NULL);
    munmap((void *)(uintptr_t)ptr, size);
    return unreserve(ptr);
}
