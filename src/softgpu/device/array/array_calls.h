/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: made, described, destroyed.
 */
#pragma once

#include "soft_array.h"

/* In the current context, zeroed, with one reference. CUDA_ERROR_INVALID_VALUE for what the device
 * cannot have, CUDA_ERROR_OUT_OF_MEMORY, or that there is no context. */
CUresult array_create_locked(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, enum soft_handle_type type,
                             unsigned levels, struct array **ret_array);
/* Finds a part of an array for a copy: CUDA_ERROR_INVALID_VALUE when it is not all inside, or
 * begins or ends within an element. */
CUresult array_side_locked(CUarray handle, const uint64_t at[3], const struct box *box,
                           struct box_side *ret_side);
/* The handle names nothing from now on. */
void array_retire_locked(struct array *array);
/* Before an array is destroyed: waits for the work of the current context, which may be about to
 * read it. Releases soft_lock meanwhile. */
CUresult array_await_locked(void);
/* Nothing that is queued may need it any more when this is the last reference. */
void array_unref_locked(struct array *array);
void arrays_drop_context_locked(struct context *context);
