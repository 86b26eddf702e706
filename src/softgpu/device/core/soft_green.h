/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: some of a device's virtual SMs, and the streams whose kernels run on no others.
 * All else in one is the device's primary context. Everything here needs soft_lock.
 */
#pragma once

#include "cuda_sm_resource.h"
#include "soft_context.h"
#include "soft_stream.h"

struct green {
    uint64_t handle;       /* as a CUgreenCtx */
    uint64_t as_context;   /* as a CUcontext, of which the primary one is meant */
    unsigned long long id; /* as of contexts */
    struct device *device;
    struct sm_set set;
    uint64_t legacy;           /* the handle of its NULL stream */
    struct operation *barrier; /* its later streams wait for this, or NULL */
};

/* The green context that is current in this thread, or NULL. */
struct green *green_current_locked(void);
/* The green context of a CUcontext handle, or NULL. */
struct green *green_of_context_locked(CUcontext handle);

/* Confines a new stream. False when there is no memory. */
bool green_add_stream_locked(struct green *green, struct stream *stream);
/* The value of the current green context, if there is one. */
bool green_adopt_stream_locked(struct stream *stream);

/* Its NULL stream; NULL when the primary context has been reset. */
struct stream *green_default_locked(const struct green *green);
/* The NULL stream of those streams among which this one is. */
struct stream *green_legacy_locked(const struct stream *stream);

/* Waits for its streams, without soft_lock. Returns the context's sticky error. */
CUresult green_synchronize_locked(struct green *green);
