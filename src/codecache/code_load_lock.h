/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark says that a server is loading an entry now. When it is found later and no server holds it,
 * that server has died meanwhile, perhaps of this entry, which must not kill the next server as
 * well.
 */
#pragma once

#include "code_entry.h"

/* Marks the entry until the descriptor is given to code_load_lock_release(), or the process ends: 0
 * or -errno. */
int code_load_lock_take(const struct code_directory *directory, const char *name, int *ret_fd);
void code_load_lock_release(const struct code_directory *directory, const char *name, int *fd);

/* Deletes the entries whose marks no process holds: how many. */
unsigned code_load_locks_recover(const struct code_directory *directory);
