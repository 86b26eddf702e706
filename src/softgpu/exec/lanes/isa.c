/* SPDX-License-Identifier: Apache-2.0 */
/* See isa.h. */
#include "isa.h"

#ifdef ISA_MANY
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static enum isa best;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static enum isa isa_of_cpu(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return ISA_V4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return ISA_V3;
    return ISA_BASE;
}

/* Tests run the older variants too, on whatever machine they are. */
static void find_best(void)
{
    static const char *const names[] = {"sse2", "avx2", "avx512"};
    const char *wanted = getenv("FUNNEL_SOFT_VECTORS");
    best = isa_of_cpu();
    for (unsigned i = 0; wanted && i < best; i++) {
        if (strcmp(wanted, names[i]) == 0)
            best = (enum isa)i;
    }
}

enum isa isa_best(void)
{
    pthread_once(&once, find_best);
    return best;
}
#else
enum isa isa_best(void)
{
    return ISA_BASE;
}
#endif

bool isa_has_wide_moves(void)
{
#ifdef ISA_MANY
    return isa_best() >= ISA_V3;
#elif defined(__x86_64__)
    return __builtin_cpu_supports("avx");
#else
    return false;
#endif
}
