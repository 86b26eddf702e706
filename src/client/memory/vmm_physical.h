/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory that programs make for mappings of their own, and that they share with other
 * processes as a descriptor. The server makes it; references are counted here.
 */
#pragma once

#include "vmm_tables.h"

/* NULL when the program holds no reference to it. */
struct physical *vmm_physical_lookup_locked(CUmemGenericAllocationHandle handle);
/* Called when a reference or a mapping has ended: with the last one, the memory is released and the
 * structure freed. */
void vmm_physical_settle_locked(struct physical *physical);

/* A child of fork would keep memory beyond the end of its parent. */
void vmm_physical_after_fork_in_child(void);
