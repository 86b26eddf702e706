/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of files that clients share with other processes. Anybody who may write such a file can
 * cut it short, and then an access to what is gone raises SIGBUS here. So that kills nobody, the
 * handler puts zero pages of this process in the place of the whole mapping: the client's device
 * and the file have nothing in common from then on.
 *
 * From any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Before the first mapping that is guarded, on one thread: installs the handler. Every other SIGBUS
 * has the effect that it had. 0 or -errno. */
int file_guard_init(void);

/* Guards the mapping [start, start + size). 0 or -ENOMEM. */
int file_guard_add(uint64_t start, uint64_t size);

/* The mapping that begins there is gone. Whether the file was cut short meanwhile. */
bool file_guard_remove(uint64_t start);
