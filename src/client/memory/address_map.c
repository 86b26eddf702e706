/* SPDX-License-Identifier: Apache-2.0 */
#include "address_map.h"

#include "client_ipc.h"
#include "client_memory.h"
#include "client_variable.h"
#include "client_vmm.h"
#include "host_register.h"
#include "managed_hooks.h"

typedef bool registry_find(uint64_t address, struct allocation *ret_allocation);

static bool find_on_device(uint64_t address, struct allocation *ret_allocation)
{
    const struct device *device = memory_device_of(address);

    return device && heap_find(memory_device_heap(device), address, ret_allocation);
}

static bool find_on_host(uint64_t address, struct allocation *ret_allocation)
{
    return heap_find(memory_host_heap(), address, ret_allocation);
}

/* The registries that may know an address in each part of the address space, in the order in which
 * they are asked. A managed variable is a variable of its module as well. */
static registry_find *const device_part[] = {find_on_device, ipc_find, managed_find, NULL};
static registry_find *const host_part[] = {find_on_host, host_register_find, NULL};
static registry_find *const reserved_part[] = {vmm_find, NULL};
static registry_find *const other_part[] = {host_register_find, managed_find, variable_find, NULL};

/* Reservations lie above all windows. */
static registry_find *const *part_of(uint64_t address)
{
    if (client_in_window(address))
        return address < client->host_base ? device_part : host_part;
    return vmm_is_reserved(address) ? reserved_part : other_part;
}

static bool find_in_part(registry_find *const *part, uint64_t address,
                         struct allocation *ret_allocation)
{
    for (registry_find *const *find = part; *find; find++)
        if ((*find)(address, ret_allocation))
            return true;
    return false;
}

bool address_map_find(uint64_t address, struct allocation *ret_allocation)
{
    return find_in_part(part_of(address), address, ret_allocation);
}

enum place address_map_place(uint64_t address, uint64_t size)
{
    registry_find *const *part = part_of(address);
    struct allocation allocation;
    const struct memory_kind *kind;

    if (!find_in_part(part, address, &allocation))
        return part == other_part ? PLACE_PAGEABLE : PLACE_NOWHERE;
    kind = allocation.kind;
    if (kind->covers)
        return kind->covers(address, size) ? kind->place : kind->beyond;
    return size <= allocation.size - (address - allocation.address) ? kind->place : kind->beyond;
}
