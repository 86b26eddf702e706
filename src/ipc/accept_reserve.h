/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that a process keeps for a connection that comes when it has no other one. A
 * listening socket stays readable while a connection waits that cannot be accepted, so a process
 * that only tries again would do nothing else.
 */
#pragma once

#include <stdbool.h>

/* After sock_accept(): whether the error is a shortage. */
bool accept_is_short(int error);

/* Keeps a descriptor: returns it, or -1. */
int accept_reserve_open(void);

/* Accepts a connection in place of the kept descriptor, which is -1 afterwards. 0 or -errno, and
 * then the descriptor is kept again if another thread has not taken it. Nothing is done without
 * one, which is -EMFILE. */
int accept_by_reserve(int *reserve, int listen_fd, int *ret_fd);
