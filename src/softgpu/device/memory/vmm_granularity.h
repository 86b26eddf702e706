/* SPDX-License-Identifier: Apache-2.0 */
/* The unit of reserved addresses and of memory for them, in bytes: that of NVIDIA's driver. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VMM_GRANULARITY (2ull << 20)

static inline bool vmm_is_whole(uint64_t value)
{
    return value % VMM_GRANULARITY == 0;
}
