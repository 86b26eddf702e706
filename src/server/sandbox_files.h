/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a server may open from its start to its end: what the driver needs, and the
 * directories of compiled code. Descriptors that clients pass are not concerned.
 */
#pragma once

/* The calling thread, and each that it starts, is confined for good. Needs no_new_privs, and has to
 * come before the driver starts threads. 0 or -errno; -ENOSYS and -EOPNOTSUPP: the kernel has no
 * Landlock. `listen_path` is the socket that the server is about to make, or NULL. */
int sandbox_files_confine(const char *listen_path);
