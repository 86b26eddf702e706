/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of userfaultfd(2), by which the kernel suspends threads at page faults.
 */
#pragma once

#include <stdbool.h>

/* A new descriptor, before its features are asked for: by the system call, or by /dev/userfaultfd
 * where the process may open that, as in containers that forbid the call. Where neither is allowed
 * and `threads_only` is set, the descriptor of unprivileged processes: then system calls that
 * access such pages fail with EFAULT, rather than wait, and *ret_threads_only is true. -errno. From
 * any thread. */
int userfault_open(bool threads_only, bool *ret_threads_only);
