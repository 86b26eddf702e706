/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special registers (%tid.x, ...): a number each.
 */
#pragma once

#include "warp_state.h"

/* The number of a special register ("%tid.x"), or -1. */
int special_find(const char *name);
bool special_is_wide(unsigned special);
/* Those that change while a warp runs (%clock) must be filled at each use. */
bool special_is_volatile(unsigned special);
/* Those that differ between the blocks of a grid. */
bool special_is_of_block(unsigned special);
/* Those that say where the reserved part of shared memory is. */
bool special_needs_reserved(unsigned special);
void special_fill(struct warp *warp, unsigned special, uint32_t offset);

void run_read_special(struct warp *warp, const struct insn *insn);
