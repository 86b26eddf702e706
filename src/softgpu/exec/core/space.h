/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space inside the compute core; sg_space.h is the driver's interface. Every function
 * may be called on any thread.
 */
#pragma once

#include "sg_space.h"
#include "warp_state.h"

/* Fills *ret_range with the range that holds the address; false where there is none. */
bool space_lookup(struct sg_space *space, uint64_t address, struct range_cache *ret_range);
/* Changes when a range goes; read it with __atomic_load_n. It lives as long as the space. */
const uint64_t *space_generation(const struct sg_space *space);
/* The kernels' malloc and free: 0 when the owner has no memory left, false for an address that was
 * not allocated. */
uint64_t heap_allocate(struct sg_space *space, uint64_t owner, uint64_t size);
bool heap_release(struct sg_space *space, uint64_t address);
/* Copies the texture or surface object with this number: false when there is none. */
bool space_texture(struct sg_space *space, uint64_t number, struct sg_texture *ret_texture);
