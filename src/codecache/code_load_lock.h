/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load lock says that a server is loading an entry. A lock file that no server holds is left from
 * a server that died during the load. The entry may have caused that, so the next server must not
 * load it.
 */
#pragma once

#include "code_entry.h"

/* Takes the lock of the entry until code_load_lock_release(), or until the process ends: 0 or
 * -errno. */
int code_load_lock_take(const struct code_directory *directory, const char *name, int *ret_fd);
void code_load_lock_release(const struct code_directory *directory, const char *name, int *fd);

/* Deletes the entries with a lock file that no process holds. Returns how many. */
unsigned code_load_locks_recover(const struct code_directory *directory);
