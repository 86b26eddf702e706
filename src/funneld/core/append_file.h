/* SPDX-License-Identifier: Apache-2.0 */
/* Files that only grow: a part of one is there as a whole or not at all. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Appends to the file at `path`, which is made where there is none, and never through a link: 0 or
 * -errno. What does not fit on the disk as a whole is taken back. The file is opened for each call,
 * so that a new one begins after it has been moved away.
 *
 * All such files are the daemon's: no other user may read them, but `reader`, where the file system
 * keeps access control lists. It is the daemon's own user where there is no other. */
int append_file(const char *path, uid_t reader, const void *data, size_t size);
