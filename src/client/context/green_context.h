/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the program. Such a context owns streams on some of the client's
 * multiprocessors, which are a share of the server's (sm_share.h there). For all else it is the
 * primary context of its device.
 */
#pragma once

#include "client_context.h"
#include "cuda_sm_resource.h"

struct green {
    CUgreenCtx handle;
    struct context *context;
    struct sm_set set;
};

/* NULL when there is no such green context. */
struct green *green_lookup(CUgreenCtx handle);

/* The multiprocessors of the device that the client has now. Waits for the server.
 * CUDA_ERROR_NOT_SUPPORTED where the device cannot be divided. */
CUresult green_device_set(const struct device *device, struct sm_set *ret_set);

/* Takes the multiprocessors and makes the context, which keeps the primary one. The server's error,
 * or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult green_create(struct device *device, const struct sm_set *set, struct green **ret_green);

/* Waits for its work, and ends it with its streams. CUDA_ERROR_INVALID_CONTEXT when it is gone
 * already. */
CUresult green_destroy(CUgreenCtx handle);
