/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark says that a server is loading an entry now. When it is found later and no server holds it,
 * that server has died meanwhile, perhaps of this entry, which must not kill the next server as
 * well.
 */
#pragma once

#include "code_entry.h"

/* Marks the entry until the descriptor is given to code_mark_remove(), or the process ends: 0 or
 * -errno. */
int code_mark_set(const struct code_directory *directory, const char *name, int *ret_fd);
void code_mark_remove(const struct code_directory *directory, const char *name, int *fd);

/* Deletes the entries whose marks no process holds: how many. */
unsigned code_marks_settle(const struct code_directory *directory);
