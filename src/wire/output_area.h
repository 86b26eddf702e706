/* SPDX-License-Identifier: Apache-2.0 */
/* Device output on its way from the server to a client: what the client's kernels print, and the
 * messages of their failed assertions.
 *
 * A ring of bytes with one writer and one reader. Each side keeps its own cursor in private memory
 * and publishes a copy; it takes the other's copy for true only if it can be. One thread at a time
 * uses each end. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_AREA_BYTES (1u << 16)

struct output_area {
    _Atomic uint32_t tail; /* server: bytes written so far; wraps */
    unsigned char pad1[60];
    _Atomic uint32_t head; /* client: bytes read so far; wraps */
    unsigned char pad2[4096 - 68];
    char data[OUTPUT_AREA_BYTES]; /* byte n of the output lies at n % OUTPUT_AREA_BYTES */
};

/* Writes as many of the `size` bytes as fit, and returns how many that is: 0 when the client's
 * cursor is an impossible one. `tail` is the server's own cursor, 0 at first. */
size_t output_area_put(struct output_area *area, uint32_t *tail, const char *bytes, size_t size);

/* Reads up to `size` bytes and returns how many there were. `head` is the client's own cursor, 0 at
 * first. */
size_t output_area_take(struct output_area *area, uint32_t *head, char *ret_bytes, size_t size);
