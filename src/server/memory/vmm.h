/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management for clients: reservations, physical memory, and mappings of physical
 * memory in reservations. All of it is the session thread's.
 */
#pragma once

#include "session.h"

/* Whether the client may have a dma-buf of all memory in a range, which counts as a descriptor: see
 * memory_may_export(). CUDA_ERROR_INVALID_VALUE when the range has other contents than mappings of
 * the device's memory; CUDA_ERROR_NOT_PERMITTED when the client's memory limit forbids it. */
CUresult vmm_may_export(struct session *session, unsigned device, uint64_t address, uint64_t size);

/* Whether kernels of the device reach all physical memory of it that the client has. */
bool vmm_is_reached(struct session *session, unsigned device);

/* Unmaps, releases and unreserves everything. The client's work is done. */
void vmm_release_all(struct session *session);
