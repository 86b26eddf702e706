/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcpy() for data that the copying core does not read again. The stores bypass its caches, so
 * that no line is fetched only to be overwritten.
 */
#pragma once

#include <stddef.h>

/* Shorter copies stay in the cache, where their reader finds them sooner. */
#define STREAMING_COPY_FROM 65536u

/* A variant that this CPU can run. All are correct for any size and alignment, and their stores are
 * visible before any store that follows. */
struct copy_variant {
    const char *name;
    void (*copy)(void *dst, const void *src, size_t size);
};

/* The variants from plain memcpy(), always the first, to the widest that this CPU can run. Returns
 * how many there are. */
unsigned copy_variants(const struct copy_variant **ret_variants);

/* Called once while attaching: chooses the widest variant, or plain memcpy() with
 * FUNNEL_OFF=streaming-copy. */
void streaming_copy_init(void);

/* Copies with the chosen variant, or with memcpy() if `size` is below STREAMING_COPY_FROM. */
void streaming_copy(void *dst, const void *src, size_t size);
