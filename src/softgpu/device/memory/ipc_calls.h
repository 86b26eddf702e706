/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes. A handle stands for one allocation, whose pages both then have; they
 * stay for as long as a process has them mapped.
 */
#pragma once

#include "ipc_memory_open.h"

/* A handle for an allocation of this process. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ipc_name_locked(struct memory *memory, void *ret_handle);

/* Opens an allocation of another process, as one of a pool or not; one that is open already has the
 * same address again. CUDA_ERROR_INVALID_VALUE, _INVALID_CONTEXT for our own, _OUT_OF_MEMORY. */
CUresult ipc_open_locked(struct context *context, const void *handle, bool of_pool,
                         CUdeviceptr *ret_address);

/* Whether it is another process's, imported with a pool: then it is freed, and not closed. */
bool ipc_is_of_pool_locked(const struct memory *memory);

/* Counts that it is closed: true when it is to be freed now, as all other memory always is. */
bool ipc_is_last_open_locked(struct memory *memory);
