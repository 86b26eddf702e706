/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that come while the daemon has no descriptor left. They wait in the kernel's queue,
 * since descriptors mostly become free soon. When that has not happened for a while they are
 * refused with a message, by means of a descriptor that is kept for it.
 */
#pragma once

#include "daemon.h"

/* Keeps a descriptor. */
void accept_shortage_init(struct daemon *daemon);
void accept_shortage_fini(struct daemon *daemon);

/* Goes on after accept_is_short(): refuses the next connection and returns true; or stops accepting
 * for some time. */
bool accept_shortage_refuse(struct daemon *daemon, int listen_fd, int error);

/* There are descriptors: a connection was accepted, or none waits. */
void accept_shortage_end(struct daemon *daemon);
