/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcpy for chunks that the copying core does not read again: the stores go past its caches, so
 * that no line is fetched only to be overwritten.
 */
#pragma once

#include <stddef.h>

/* Shorter copies stay in the cache, where their reader finds them sooner. */
#define STREAMING_COPY_FROM 65536u

/* A way of copying that this CPU knows. All are correct for any size and alignment, and their
 * stores are seen before any store that follows. */
struct copy_variant {
    const char *name;
    void (*copy)(void *dst, const void *src, size_t size);
};

/* The ways from plain memcpy (always way 0) to the widest that this CPU knows: how many. */
unsigned copy_variants(const struct copy_variant **ret_variants);

/* Called once while attaching: chooses the widest way, or the plain one if FUNNEL_NO_STREAMING=1.
 */
void streaming_copy_init(void);

/* Copies in the chosen way, or plainly what is short. */
void streaming_copy(void *dst, const void *src, size_t size);
