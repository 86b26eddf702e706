/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's facts about a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    char state;       /* of its main thread, as in proc(5) */
    unsigned flags;   /* PF_EXITING and others, as in proc(5) */
    uint64_t started; /* clock ticks since the machine has started; no later process of that
                       * number has the same */
};

/* /proc/PID/stat; all zero where there is no such process, or it cannot be read. */
struct process_stat process_stat_read(pid_t pid);

/* Of the calling process, also where /proc is that of another PID namespace. */
struct process_stat process_stat_own(void);

/* Whether no process has this number. One that cannot be seen or signalled counts as one that runs,
 * and so does 0. */
bool process_is_gone(pid_t pid);

/* Whether the process of a pidfd has ended; it need not have been reaped. */
bool process_has_ended(int process_fd);
