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

/* The registered memory at an address of either kind, with its start by that kind: false when there
 * is none there. */
bool host_register_find(uint64_t address, struct allocation *ret_allocation);

/* The address by which the device reaches what is at an address of the program. It differs for
 * registered memory only. */
uint64_t host_register_on_device(uint64_t address);

/* Shows another server the registered memory. With the library closed. */
CUresult host_register_replay(void);

/* Ends the registrations of a context, whose work is done. */
void host_register_end_all(const struct context *context);
