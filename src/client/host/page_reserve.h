/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving addresses at which the GPU sees memory, so that nothing else of this process is mapped
 * there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reserves `size` bytes at `address`, both whole pages, with pages that cannot be accessed and that
 * a child of fork does not inherit. False when something is mapped there. From any thread. */
bool page_reserve(uint64_t address, uint64_t size);
