/* SPDX-License-Identifier: Apache-2.0 */
/* Time: all code uses one clock, so that times of different processes compare. */
#include "clock.h"

#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}
