/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait for what no operation brings about: a word of memory, another process.
 */
#pragma once

#include <stdbool.h>

struct operation;

/* For start_locked(): whether it holds already; else one thread asks again from time to time and
 * finishes the operation when it does, or when its context has failed. Asked thoroughly seldom, for
 * what takes system calls to find out. */
bool watch_until_locked(struct operation *operation,
                        bool (*holds)(struct operation *operation, bool thoroughly));
