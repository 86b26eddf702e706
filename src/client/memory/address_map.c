/* SPDX-License-Identifier: Apache-2.0 */
#include "address_map.h"

#include "client_ipc.h"
#include "client_memory.h"
#include "client_variable.h"
#include "client_vmm.h"
#include "host_register.h"
#include "managed_hooks.h"

static bool find_in_host_part(uint64_t address, struct allocation *ret_allocation)
{
    return heap_find(memory_host_heap(), address, ret_allocation) ||
           host_register_find(address, ret_allocation);
}

static bool find_in_device_part(uint64_t address, struct allocation *ret_allocation)
{
    const struct device *device = memory_device_of(address);

    return device && (heap_find(memory_device_heap(device), address, ret_allocation) ||
                      ipc_find(address, ret_allocation) || managed_find(address, ret_allocation));
}

/* A managed variable is a variable of its module as well. */
static bool find_outside(uint64_t address, struct allocation *ret_allocation)
{
    return host_register_find(address, ret_allocation) || managed_find(address, ret_allocation) ||
           variable_find(address, ret_allocation);
}

/* The parts do not overlap: reservations lie above all windows, and what lies between them is
 * outside. */
bool address_map_find(uint64_t address, struct allocation *ret_allocation)
{
    if (client_in_window(address))
        return address < client->host_base ? find_in_device_part(address, ret_allocation)
                                           : find_in_host_part(address, ret_allocation);
    if (vmm_is_reserved(address))
        return vmm_find(address, ret_allocation);
    return find_outside(address, ret_allocation);
}

enum place address_map_place(uint64_t address, uint64_t size)
{
    struct allocation allocation;
    const struct memory_kind *kind;

    if (!address_map_find(address, &allocation))
        return client_in_window(address) || vmm_is_reserved(address) ? PLACE_NOWHERE
                                                                     : PLACE_PAGEABLE;
    kind = allocation.kind;
    if (kind->covers)
        return kind->covers(address, size) ? kind->place : kind->beyond;
    return size <= allocation.size - (address - allocation.address) ? kind->place : kind->beyond;
}
