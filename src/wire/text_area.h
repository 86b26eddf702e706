/* SPDX-License-Identifier: Apache-2.0 */
/* Text on its way from the server to a client: what the client's kernels print.
 *
 * A ring of bytes with one writer and one reader. Each side keeps its own cursor in private memory
 * and publishes a copy; of the other's copy it believes only what can be true. */
#ifndef FUNNEL_TEXT_AREA_H
#define FUNNEL_TEXT_AREA_H

#include <stddef.h>
#include <stdint.h>

#define TEXT_AREA_BYTES (1u << 16)

struct text_area {
    uint32_t tail; /* server: bytes written so far; wraps */
    unsigned char pad1[60];
    uint32_t head; /* client: bytes read so far; wraps */
    unsigned char pad2[4096 - 68];
    char data[TEXT_AREA_BYTES];
};

/* Writes what fits and returns how much that is. A head that cannot be leaves no room. */
size_t text_area_put(struct text_area *area, uint32_t *tail, const char *text, size_t size);

/* Reads up to `size` bytes and returns how many there were. */
size_t text_area_take(struct text_area *area, uint32_t *head, char *ret_text, size_t size);

#endif
