/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a kernel that can share a place in the register file, one after the other. Compilers
 * name a new register for each result. So a warp's file would be larger than the CPU's first cache,
 * though few registers are in use at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ptx.h"

struct register_slots {
    uint32_t *slot;     /* by register; those of different widths are counted apart */
    uint32_t counts[3]; /* slots of 64 bits, of 32 bits, and predicates */
};

/* 0 for registers of 64 and 128 bits, which take one and two slots, 1 for those of up to 32 bits, 2
 * for predicates. */
unsigned register_width(enum ptx_type type);

/* The slots of a function's registers, for the caller to end. False when out of memory. */
bool register_slots_init(struct register_slots *slots, const struct ptx_function *function);
void register_slots_fini(struct register_slots *slots);
