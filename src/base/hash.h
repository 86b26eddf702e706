/* SPDX-License-Identifier: Apache-2.0 */
/* A hash for finding bytes and for noticing that they have changed by accident. It is no proof: who
 * wants to can make other bytes with the same hash. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t size);
