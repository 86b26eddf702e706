/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of processes in the PID namespace of a front end. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct pid_viewer {
    unsigned level; /* 1 = the daemon's own namespace, 2 = a child of that, ...; 0 = outside */
    uint64_t space; /* inode of its namespace */
};

/* Of a front end by its number in the daemon's namespace, which is 0 for one outside. */
struct pid_viewer pid_viewer_of(pid_t pid);

/* The number of a process of the daemon's namespace as the viewer sees it. 0: the viewer does not
 * see it, or the kernel does not tell. */
pid_t pid_seen_by(const struct pid_viewer *viewer, pid_t pid);
