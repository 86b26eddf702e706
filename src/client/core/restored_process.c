/* SPDX-License-Identifier: Apache-2.0 */
/* See restored_process.h. */
#include "restored_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"

#define FIELD_STARTED 22
#define FIELD_AFTER_NAME 3

uint64_t machine_ns(void)
{
    struct timespec time = {0};

    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * NS_PER_SEC + (uint64_t)time.tv_nsec;
}

/* The name, which is the second field, may have blanks. */
static const char *find_started(const char *status)
{
    const char *at = strrchr(status, ')');

    for (int field = FIELD_AFTER_NAME - 1; at && field < FIELD_STARTED; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at;
}

/* In ticks; 0 = not known. */
static uint64_t started_ticks(void)
{
    char status[1024];
    _cleanup_fd_ int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

    if (size < 0)
        return 0;
    status[size] = '\0';
    const char *started = find_started(status);
    return started ? strtoull(started, NULL, 10) : 0;
}

bool process_is_restored_since(uint64_t time_ns)
{
    long per_second = sysconf(_SC_CLK_TCK);

    if (machine_ns() < time_ns)
        return true;
    return per_second > 0 && started_ticks() * (NS_PER_SEC / (uint64_t)per_second) > time_ns;
}
