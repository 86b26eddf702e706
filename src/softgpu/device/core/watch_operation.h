/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait for what no operation brings about: a word of memory, another process.
 */
#pragma once

#include <stdbool.h>

struct operation;

/* For start_locked(), with soft_lock held: true when the operation's condition holds already. Else
 * one thread evaluates it again from time to time, under soft_lock, and finishes the operation when
 * it holds or when its context has failed. `thoroughly` is seldom true: for checks that take system
 * calls. Also true, with a message in the log, when out of memory. */
bool watch_until_locked(struct operation *operation,
                        bool (*holds)(struct operation *operation, bool thoroughly));
