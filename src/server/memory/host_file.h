/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of files in memory (tmpfs) that a client shares with other processes: /dev/shm, memfd.
 * Other files are refused: a network or a program that serves their pages could block this process
 * forever.
 */
#pragma once

#include <stdint.h>

/* Whether [offset, offset + size) of a client's descriptor can be mapped: 0. -EINVAL: the range is
 * bad. -EOPNOTSUPP: the file is not in memory. -EMSGSIZE: it is shorter. */
int host_file_check(int fd, uint64_t offset, uint64_t size);

/* Maps the range at an address, in place of the mapping there: 0; -EACCES or -EPERM when the
 * descriptor is not writable; -errno. */
int host_file_map(int fd, uint64_t offset, uint64_t size, uint64_t address);

/* Another mapping has replaced the file there. */
void host_file_unmapped(uint64_t address);
