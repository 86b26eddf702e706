/* SPDX-License-Identifier: Apache-2.0 */
/* The two futex operations that we use. libc has no wrapper for them. */
#include "futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

int futex_wait(const void *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / NS_PER_SEC),
        .tv_nsec = (long)(timeout_ns % NS_PER_SEC),
    };
    long rc = syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns ? &timeout : NULL, NULL, 0);
    return rc < 0 ? -errno : 0;
}

int futex_wake(const void *word, int count)
{
    long woken = syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
    return woken < 0 ? 0 : (int)woken;
}
