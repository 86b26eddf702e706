/* SPDX-License-Identifier: Apache-2.0 */
/* A file without a name for the memory of a suspended program. It ends with its last descriptor, so
 * that nothing has to be cleaned up after a kill. */
#pragma once

/* Makes one in the directory. *ret_envelope is the end of a socket with two descriptors of it, one
 * to write and one only to read. SUSPEND_CLIENT takes it like that, and the caller closes it.
 * Returns 0, or 1 after an error message. */
int suspend_file_make(const char *directory, int *ret_envelope);

/* The same for a file that there is, open to read and write: 0 or -errno. */
int suspend_file_send(int file, int *ret_envelope);
