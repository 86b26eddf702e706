/* SPDX-License-Identifier: Apache-2.0 */
/* Small text files that are replaced as a whole. Errors are -errno; none of it from threads. */
#pragma once

/* Replaces the file, or makes it with `mode`: a reader sees the old text or the new. Folders above
 * it are made. A symbolic link is followed; the mode of a file that exists is kept. */
int text_file_write(const char *path, const char *text, unsigned mode);

/* The whole text, to be freed, or NULL: -ENOENT, or -EFBIG beyond 1 MiB. */
int text_file_read(const char *path, char **ret_text);

/* Takes out the lines that end with `mark`, and adds `line` unless that is NULL. Returns 1 when the
 * file has changed, and 0 otherwise. A file that does not exist is made only for a line. */
int text_file_mark(const char *path, const char *mark, const char *line);
