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
void ipc_withdraw(uint64_t address);

/* The 64 bytes of a handle for an allocation of this client, and the address of one that another
 * client has named: as cuIpcGetMemHandle and cuIpcOpenMemHandle, which see to it that neither is of
 * a pool. */
CUresult ipc_name_allocation(const struct allocation *allocation, void *ret_handle);
CUresult ipc_open(struct context *context, const void *handle, bool of_pool,
                  CUdeviceptr *ret_address);

/* Closes one open of the memory of another process that begins here, when all work of its device is
 * done: false when there is none. CUDA_ERROR_INVALID_VALUE when it was not opened as what `of_pool`
 * says. */
bool ipc_takes_free(CUdeviceptr address, bool of_pool, CUresult *ret_result);

/* Closes what a context has opened. Its work is done. */
void ipc_close_all(struct context *context);
