/* SPDX-License-Identifier: Apache-2.0 */
/* See first_times.h. */
#include "first_times.h"

#include <string.h>

#include "cleanup.h"

bool first_time(struct first_times *times, const char *name, int number)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&times->lock);

    for (unsigned i = 0; i < times->count; i++)
        if (times->seen[i].number == number && !strcmp(times->seen[i].name, name))
            return false;
    if (times->count == FIRST_TIMES_MAX)
        return false;
    times->seen[times->count].name = name;
    times->seen[times->count++].number = number;
    return true;
}
