/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NVIDIA's driver library to its kernel module, as far as the server looks at them.
 * Numbers and layouts are those of NVIDIA's open kernel modules (nvos.h); the declarations are
 * ours.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RM_MAGIC 'F' /* NV_IOCTL_MAGIC */
#define RM_FREE 0x29u
#define RM_CONTROL 0x2au
#define RM_ALLOC 0x2bu

struct rm_alloc {
    uint32_t client, parent, object, class;
    uint64_t parameters;
};

struct rm_free {
    uint32_t client, parent, object;
};

struct rm_control {
    uint32_t client, object, command, flags;
    uint64_t parameters;
    uint32_t size, status;
};

/* Whether the request of an ioctl() is that call. */
static inline bool rm_call_is(unsigned long request, unsigned number)
{
    return ((request >> 8) & 0xff) == RM_MAGIC && (request & 0xff) == number;
}
