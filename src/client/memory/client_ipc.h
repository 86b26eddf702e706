/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events of other processes. The server knows both sides; a handle of CUDA's is the
 * number under which it finds what is meant.
 */
#pragma once

#include "client_memory.h"

/* Called once while attaching. */
void ipc_init(void);

/* What of another process is open at an address, told as an allocation. */
bool ipc_find(uint64_t address, struct allocation *ret_allocation);

/* The allocation that begins here is about to be freed: nobody may open it any more. */
void ipc_withdraw(uint64_t address);

/* Closes what a context has opened. Its work is done. */
void ipc_close_all(struct context *context);
