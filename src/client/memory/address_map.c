/* SPDX-License-Identifier: Apache-2.0 */
#include "address_map.h"

#include "client_ipc.h"
#include "client_memory.h"
#include "client_variable.h"
#include "client_vmm.h"
#include "host_register.h"
#include "managed_hooks.h"

/* The first two are the parts of the window. */
enum part { PART_DEVICE, PART_HOST, PART_RESERVED, PART_OTHER };

/* Reservations lie above all windows. */
static inline __attribute__((always_inline)) enum part part_of(uint64_t address)
{
    if (client_in_window(address))
        return address < client->host_base ? PART_DEVICE : PART_HOST;
    return vmm_is_reserved(address) ? PART_RESERVED : PART_OTHER;
}

static bool find_in_window(uint64_t address, struct allocation *ret_allocation)
{
    struct heap *heap = memory_heap_of(address);

    return heap && heap_find(heap, address, ret_allocation);
}

/* The registries that may know an address in each part of the address space, in the order in which
 * they are asked. A managed variable is a variable of its module as well. Inline, because each copy
 * passes here twice. */
static inline __attribute__((always_inline)) bool find_in_part(enum part part, uint64_t address,
                                                               struct allocation *ret_allocation)
{
    if (part == PART_RESERVED)
        return vmm_find(address, ret_allocation);
    return (part != PART_OTHER && find_in_window(address, ret_allocation)) ||
           (part == PART_DEVICE && ipc_find(address, ret_allocation)) ||
           (part != PART_DEVICE && host_register_find(address, ret_allocation)) ||
           (part != PART_HOST && managed_find(address, ret_allocation)) ||
           (part == PART_OTHER && variable_find(address, ret_allocation));
}

bool address_map_find(uint64_t address, struct allocation *ret_allocation)
{
    return find_in_part(part_of(address), address, ret_allocation);
}

enum place address_map_place(uint64_t address, uint64_t size)
{
    const enum part part = part_of(address);
    struct allocation allocation;
    const struct memory_kind *kind;

    if (!find_in_part(part, address, &allocation))
        return part == PART_OTHER ? PLACE_PAGEABLE : PLACE_NOWHERE;
    kind = allocation.kind;
    if (kind->covers)
        return kind->covers(address, size) ? kind->place : kind->beyond;
    return size <= allocation.size - (address - allocation.address) ? kind->place : kind->beyond;
}
