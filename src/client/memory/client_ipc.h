/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events of other processes. The server knows both sides; a CUDA handle holds the number
 * by which the server finds the memory or event.
 */
#pragma once

#include "client_memory.h"

/* Called once while attaching. */
void ipc_init(void);

/* The memory of another process that is open at an address, as an allocation: false when there is
 * none. */
bool ipc_find(uint64_t address, struct allocation *ret_allocation);

/* The allocation that begins here is about to be freed: other processes cannot open it any more. */
void ipc_withdraw_at(uint64_t address);

/* The 64 bytes of a handle for an allocation of this client. And the address of an allocation that
 * another client has named, as memory of `kind`, which is closed (kind_opened) or freed
 * (kind_imported). */
CUresult ipc_name_allocation(const struct allocation *allocation, void *ret_handle);
CUresult ipc_open(struct context *context, const void *handle, const struct memory_kind *kind,
                  CUdeviceptr *ret_address);

/* Closes what a context has opened. Its work is done. */
void ipc_close_all(struct context *context);
