/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a server may open: those of the driver, and the directories of compiled code.
 * Descriptors from clients are not restricted.
 */
#pragma once

/* Restricts the calling thread, and each thread that it starts, forever. Needs no_new_privs, and
 * must come before the driver starts threads. 0 or -errno; -ENOSYS and -EOPNOTSUPP: the kernel has
 * no Landlock. `listen_path` is the socket that the server is about to create, or NULL. */
int sandbox_files_confine(const char *listen_path);
