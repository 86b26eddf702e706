/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces of a process that works on images. */
#pragma once

/* Moves the process, which has one thread, to new user, network, IPC, mount and UTS namespaces, as
 * far as the kernel allows. It then drops all capabilities, also those of the new user namespace.
 * 0; -errno: the namespaces are the old ones, but the capabilities are dropped. The kernel resets
 * PR_SET_PDEATHSIG and PR_SET_DUMPABLE meanwhile, so the caller sets them afterwards. */
int process_namespaces_leave(void);
