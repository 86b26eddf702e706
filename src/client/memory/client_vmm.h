/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, physical memory, mappings. */
#pragma once

#include "attach.h"
#include "heap.h"

struct cuda_pointer;

/* Called once while attaching. */
void vmm_init(void);

/* Whether the program has reserved an address that lies where reservations do: other memory may lie
 * there, too. */
bool vmm_is_reserved_there(uint64_t address);

static inline bool vmm_may_be_reserved(uint64_t address)
{
    return address >= RESERVE_FIRST && address < RESERVE_END;
}

static inline bool vmm_is_reserved(uint64_t address)
{
    return vmm_may_be_reserved(address) && vmm_is_reserved_there(address);
}

/* The mapping that contains an address, as an allocation: false when none does. */
bool vmm_find(uint64_t address, struct allocation *ret_allocation);

/* Where the reservation is that contains the address of the pointer, or nothing is written. */
void vmm_describe_reservation(struct cuda_pointer *pointer);
