/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special registers (%tid.x, ...): a number each.
 */
#pragma once

#include "warp_state.h"

/* The number of a special register ("%tid.x"), or -1. */
int special_find(const char *name);
bool special_is_wide(unsigned special);
/* Whether the special register changes while a warp runs (%clock), so that each use must fill it.
 */
bool special_is_volatile(unsigned special);
/* Whether the special register differs between the blocks of a grid. */
bool special_is_of_block(unsigned special);
/* Whether the special register is an address of the reserved part of shared memory. */
bool special_needs_reserved(unsigned special);
void special_fill(struct warp *warp, unsigned special, uint32_t offset);

void run_read_special(struct warp *warp, const struct insn *insn);
