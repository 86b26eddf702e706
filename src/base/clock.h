/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and the pause between two reads of a word in shared memory. */
#pragma once

#include <stdint.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_SEC 1000000000ull

/* Nanoseconds of CLOCK_MONOTONIC: comparable between processes of one machine. */
uint64_t clock_ns(void);

/* Tells the core that this is a spin loop, so its sibling thread may run. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}
