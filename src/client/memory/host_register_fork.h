/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory and fork. The child gets the same pages, but its writes to them stay in the
 * child. The ends of each range are as they were at the fork. What the program shared with other
 * processes before it shares with the child, too.
 */
#pragma once

#include "host_register.h"

/* Around a fork: a child gets registered memory as a copy of its own. The lock is held from the
 * first to the second or third. */
void host_register_before_fork(void);
void host_register_after_fork_in_parent(void);
void host_register_after_fork_in_child(void);
