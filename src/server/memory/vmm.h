/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management for clients: reservations, physical memory, and mappings of physical
 * memory in reservations. All of it is the session thread's.
 */
#pragma once

#include "session.h"

/* Whether a descriptor of a client may be passed to the driver as one of memory. */
bool vmm_could_be_memory(int fd);

/* Unmaps, releases and unreserves everything. The client's work is done. */
void vmm_release_all(struct session *session);
