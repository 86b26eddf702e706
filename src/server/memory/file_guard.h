/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards memory of files that clients share with other processes. A process that may write such a
 * file can truncate it, and then an access beyond the end raises SIGBUS here. To survive that, the
 * handler replaces the whole mapping by private zero pages. From then on the client's device and
 * the file share no memory.
 *
 * From any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Installs the handler, on one thread, before the first guarded mapping. Any other SIGBUS has its
 * previous effect. 0 or -errno. */
int file_guard_init(void);

/* Guards the mapping [start, start + size). 0 or -ENOMEM. */
int file_guard_add(uint64_t start, uint64_t size);

/* The mapping that begins there is gone. Returns whether the file was truncated meanwhile. */
bool file_guard_remove(uint64_t start);
