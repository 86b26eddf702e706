/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of userfaultfd(2), by which the kernel suspends threads at page faults.
 */
#pragma once

#include <stdbool.h>

/* A new descriptor, without features yet. It comes from the system call, or from /dev/userfaultfd
 * where the process may open that, as in containers that forbid the call. Where neither is allowed
 * and `threads_only` is set, it is the descriptor of unprivileged processes, and *ret_threads_only
 * is true. System calls that access such pages then fail with EFAULT, rather than wait. -errno.
 * From any thread. */
int userfault_open(bool threads_only, bool *ret_threads_only);
