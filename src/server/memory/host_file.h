/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of files in memory (tmpfs) that a client shares with other processes: /dev/shm, memfd.
 * Files of other kinds are refused: what serves their pages, a network or a program, could let this
 * process wait forever.
 */
#pragma once

#include <stdint.h>

/* Whether [offset, offset + size) of a client's descriptor can be mapped: 0; -EINVAL for the place,
 * -EOPNOTSUPP for a file that is not in memory, -EMSGSIZE where it ends before. */
int host_file_check(int fd, uint64_t offset, uint64_t size);

/* Maps that piece over what is at an address: 0; -EACCES or -EPERM where the descriptor cannot be
 * written through; -errno. */
int host_file_map(int fd, uint64_t offset, uint64_t size, uint64_t address);

/* Something else has been mapped there. */
void host_file_unmapped(uint64_t address);
