/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, physical memory, mappings. */
#ifndef FUNNEL_CLIENT_VMM_H
#define FUNNEL_CLIENT_VMM_H

#include "client_memory.h"

/* Called once while attaching. */
void vmm_init(void);

/* Whether an address is in the part of the window that reservations lie in. */
static inline bool vmm_is_reserved(uint64_t address)
{
    return address >= client->reserve_base && address < client->host_base;
}

/* The mapping that contains an address, told as an allocation. */
bool vmm_find(uint64_t address, struct allocation *ret_allocation);

/* Whether all of [address, address + size) is mapped, and some device has access. */
bool vmm_covers(uint64_t address, uint64_t size);

#endif
