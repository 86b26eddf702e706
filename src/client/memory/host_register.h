/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own memory that the device reaches. Its pages are replaced by those of a granule,
 * so it has two addresses: the program's, and the device's in the window.
 */
#pragma once

#include "client_context.h"
#include "heap.h"

/* Called once while attaching. */
void host_register_init(void);

/* What is registered at either of its addresses; the allocation's address is of the same kind. */
bool host_register_find(uint64_t address, struct allocation *ret_allocation);

/* Where the device finds what is at an address: registered memory elsewhere, all else there. */
uint64_t host_register_on_device(uint64_t address);

/* Shows another server the memory. */
CUresult host_register_replay(void);

/* Takes back what a context has registered; its work is done. */
void host_register_end_all(const struct context *context);

/* Around a fork: a child gets registered memory as a copy of its own. */
void host_register_before_fork(void);
void host_register_after_fork_in_parent(void);
void host_register_after_fork_in_child(void);
