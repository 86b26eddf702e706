/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that nothing else of this process may come to use, because the GPU sees memory there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reserves `size` bytes at `address`, both whole pages, with pages that cannot be accessed and that
 * a child of fork does not inherit. False when something is mapped there. From any thread. */
bool page_reserve(uint64_t address, uint64_t size);
