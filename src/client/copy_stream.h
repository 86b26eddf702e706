/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcpy for pieces that the copying core does not read again: the stores go past its caches, so
 * that no line is fetched only to be overwritten.
 */
#ifndef FUNNEL_COPY_STREAM_H
#define FUNNEL_COPY_STREAM_H

#include <stddef.h>

/* Shorter copies stay in the cache, where their reader finds them sooner. */
#define COPY_STREAM_FROM 65536u

/* A way of copying that this CPU knows. All are correct for any size and alignment, and their
 * stores are seen before any store that follows. */
struct copy_way {
    const char *name;
    void (*copy)(void *dst, const void *src, size_t size);
};

/* The ways from plain memcpy (always way 0) to the widest that this CPU knows: how many. */
unsigned copy_ways(const struct copy_way **ret_ways);

/* Called once while attaching: chooses the widest way, or the plain one if FUNNEL_NO_STREAMING=1.
 */
void copy_stream_init(void);

/* Copies in the chosen way, or plainly what is short. */
void copy_stream(void *dst, const void *src, size_t size);

#endif
