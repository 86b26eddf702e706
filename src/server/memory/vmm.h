/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management for clients: reservations, physical memory, and mappings of the one in
 * the other, all inside the client's own window.
 */
#pragma once

#include "session.h"

/* Whether a descriptor of a client's may be shown to the driver as one of memory. */
bool vmm_could_be_memory(int fd);

/* Unmaps, releases and unreserves everything. The client's work is done. */
void vmm_release_all(struct session *session);
