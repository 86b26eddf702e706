/* SPDX-License-Identifier: Apache-2.0 */
/* See restored_process.h. */
#include "restored_process.h"

#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "process_stat.h"

uint64_t machine_ns(void)
{
    struct timespec time = {0};

    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * NS_PER_SEC + (uint64_t)time.tv_nsec;
}

bool process_is_restored_since(uint64_t time_ns)
{
    long per_second = sysconf(_SC_CLK_TCK);

    if (machine_ns() < time_ns)
        return true;
    return per_second > 0 &&
           process_stat_own().started * (NS_PER_SEC / (uint64_t)per_second) > time_ns;
}
