/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups of a process, as the kernel shows them to the caller. There is one path in
 * version 2, and one for each hierarchy of version 1. A cgroup namespace of the process changes
 * nothing in that. Operators name a group by its directory below /sys/fs/cgroup.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONTROL_GROUP_ROOT "/sys/fs/cgroup"

/* Reads PROC/PID/cgroup, where PROC is /proc. Returns 0 and a text that the caller frees, or
 * -errno. -E2BIG: it has more than 128 KiB, as none that a kernel shows. */
int control_groups_read(const char *proc, pid_t pid, char **ret_groups);

/* The path in the hierarchy of version 1 with that controller, as "memory", or for "" in that of
 * version 2. The root is "". False where there is none, or it is outside of the caller's own cgroup
 * namespace, or has more than `capacity` bytes. */
bool control_groups_path(const char *groups, const char *controller, char *ret_path,
                         size_t capacity);

/* How many levels below the directory `group` the process is: 0 = in that very group, -1 = not in
 * it. With several hierarchies it is the nearest. A group outside of the caller's own cgroup
 * namespace is in none. */
int control_groups_levels_below(const char *groups, const char *group);
