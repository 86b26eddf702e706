/* SPDX-License-Identifier: Apache-2.0 */
/* How much more host memory a process may take. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Bytes that the machine has available, or that one of the process's control groups leaves it,
 * whichever is less. Pages of files that a group has not used lately count as free, since the
 * kernel drops them first. 0 where the kernel does not say. `proc` is /proc, and `root` is
 * CONTROL_GROUP_ROOT, of version 1 or 2. */
uint64_t memory_left(const char *proc, const char *root, pid_t pid);
