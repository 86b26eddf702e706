/* SPDX-License-Identifier: Apache-2.0 */
/* Files in which the daemon keeps what the next one believes: of its own user, and closed to all
 * others. */
#pragma once

#include <stddef.h>

/* Whether an open file is such a one: 0; -EPERM; -errno. */
int own_file_check(int fd);

/* Replaces the file at `path` by `data`. A process that reads it finds the old text or the new one,
 * and never a part. 0, or -errno when the old file stays. */
int own_file_replace(const char *path, const void *data, size_t size);

/* Reads such a file, never through a link. Returns 0 with an allocated text, which a NUL follows,
 * or -errno. -EPERM: it is not the daemon's alone. -EFBIG: it exceeds `most` bytes. */
int own_file_read(const char *path, size_t most, char **ret_text, size_t *ret_size);
