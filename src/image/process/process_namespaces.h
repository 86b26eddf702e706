/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that has to do with images sees of the machine. */
#pragma once

/* Moves the process, which has one thread, to user, network, IPC, mount and UTS namespaces of its
 * own, as far as the kernel and its policies allow, and gives up all capabilities, those among them
 * that a new user namespace brings. 0; -errno: it stays where it was, still without capabilities.
 * Clears the signal at the parent's death and the mark that forbids to trace it. */
int process_namespaces_leave(void);
