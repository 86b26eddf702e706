/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory limits of control groups: dmem.max and the soft dmem.min of version 2, which Linux has
 * since 6.14. The kernel counts the memory of its own drivers by it. Funnel's clients have theirs
 * from a server in another group. So the daemon reads the limits and has the server keep them.
 */
#pragma once

#include <stdbool.h>

#include "server_protocol.h"

/* Whether the kernel has such limits; `root` is /sys/fs/cgroup. */
bool group_memory_is_there(const char *root);

/* Tightens the limits of a process in these groups (control_group.h) to those of its group and of
 * all groups above. A line "REGION BYTES" is about a device whose PCI address or UUID is in the
 * region's name. The user's programs have together what the group with the tightest dmem.max
 * allows. */
void group_memory_tighten(const char *root, const char *groups, uint32_t uid,
                          const struct server_ready *ready, struct server_limits *limits);
