/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of the calling thread's affinity; all of the machine where it is too large to tell. */
#include "cpus.h"

#include <sched.h>
#include <unistd.h>

unsigned cpus_available(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}
