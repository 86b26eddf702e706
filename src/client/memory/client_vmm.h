/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, physical memory, mappings. */
#pragma once

#include "attach.h"
#include "heap.h"

/* Called once while attaching. */
void vmm_init(void);

/* Whether the program has reserved an address that lies where reservations do: other memory may lie
 * there, too. */
bool vmm_is_reserved_there(uint64_t address);

static inline bool vmm_is_reserved(uint64_t address)
{
    return address >= RESERVE_FIRST && address < RESERVE_END && vmm_is_reserved_there(address);
}

/* The mapping that contains an address, as an allocation: false when none does. */
bool vmm_find(uint64_t address, struct allocation *ret_allocation);

/* The reservation that contains an address, or nothing is written. */
void vmm_find_reservation(uint64_t address, uint64_t *ret_start, uint64_t *ret_size);

/* What may be exported of the mapping that contains an address, and how kernels may use it. */
void vmm_describe(uint64_t address, unsigned *ret_handle_types, unsigned *ret_access);

/* Whether all of [address, address + size) is mapped, and at least one device has access to it. */
bool vmm_covers(uint64_t address, uint64_t size);
