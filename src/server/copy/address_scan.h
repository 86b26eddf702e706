/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches a client's memory for addresses, as a conservative garbage collector does: any aligned
 * word of eight bytes may be one. A kernel of the server's own reads the memory, at its full speed.
 */
#pragma once

#include "address_spans.h"
#include "device.h"

struct session;

/* Loads the kernel, before there are clients that the load could stall. */
void address_scan_load(struct device *device);

/* Session thread, while none of the client's streams has work. Searches all memory of the client
 * that kernels can reach for an address in one of the spans, of which there is one at least. It is
 * one of those found, or 0. CUDA_ERROR_NOT_SUPPORTED when some of the memory cannot be searched.
 * CUDA_ERROR_NOT_READY when too many clients search at a time, or when kernels of others have
 * filled the device for half a second. Else the driver's result. */
CUresult address_scan(struct session *session, const struct address_spans *spans,
                      uint64_t *ret_address);
