/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files whose loops over lanes matter are compiled once for each ISA variant: a set of vector
 * instructions that a CPU has. What such a file defines carries the variant in its name (ISA_NAME).
 * A table of the definitions (ISA_TABLE) is indexed by the best variant that runs here.
 */
#pragma once

#include <stdbool.h>

enum isa {
    ISA_BASE, /* SSE2 on x86-64; elsewhere what the compiler assumes */
    ISA_V3,   /* x86-64-v3: AVX2 and FMA */
    ISA_V4,   /* x86-64-v4: AVX-512 */
    ISA_COUNT,
};

#ifndef ISA_VARIANT
#define ISA_VARIANT base
#endif
#define ISA_JOIN(name, variant) name##_##variant
#define ISA_EXPAND(name, variant) ISA_JOIN(name, variant)
#define ISA_NAME(name) ISA_EXPAND(name, ISA_VARIANT)

/* ISA_MANY says that the build has all variants; without it there is the first alone. */
#ifdef ISA_MANY
#define ISA_TABLE(name)                   \
    {                                     \
        name##_base, name##_v3, name##_v4 \
    }
#else
#define ISA_TABLE(name) \
    {                   \
        name##_base     \
    }
#endif

/*
 * The best variant that this CPU runs and this build has; FUNNEL_SOFT_VECTORS (sse2, avx2) may ask
 * for an older one. It never changes within a process. Any thread may call it.
 */
enum isa isa_best(void);

/* Whether an aligned move of 16 bytes is one access: on x86, whether the CPU (or the older variant
 * asked for) has AVX. Any thread may call it. */
bool isa_has_wide_moves(void);
