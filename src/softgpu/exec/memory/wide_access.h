/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic accesses of 16 bytes.
 *
 * An aligned SSE move of 16 bytes is one access on every x86 CPU that has AVX. Intel's SDM says so
 * in volume 3, section 9.1.1, and AMD of its own CPUs. Elsewhere, strong accesses and 128-bit
 * atomics exclude each other by a lock.
 */
#pragma once

#include <stdbool.h>

#include "isa.h"

typedef long long wide_vector __attribute__((vector_size(16), may_alias));

#ifdef __AVX__
static inline bool wide_moves_are_atomic(void)
{
    return true;
}
#else
static inline bool wide_moves_are_atomic(void)
{
    return isa_has_wide_moves();
}
#endif

/* From and to memory that is aligned to 16 bytes. */
void wide_load_locked(void *to, const void *from);
void wide_store_locked(void *to, const void *from);

/* volatile: the move is neither split nor repeated. */
static inline void wide_load(void *to, const void *from)
{
    *(wide_vector *)to = *(const volatile wide_vector *)from;
}

static inline void wide_store(void *to, const void *from)
{
    *(volatile wide_vector *)to = *(const wide_vector *)from;
}
