/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that programs create, and the objects that end with a context. */
#pragma once

#include "client_context.h"

/* Implements cuCtxCreate: the new context becomes the calling thread's current one. With a share,
 * its streams run on that part of the device, of `sm_count` multiprocessors; the context gives the
 * share back when it ends. On failure the share stays the caller's. */
CUresult context_open(CUcontext *ret_context, unsigned flags, CUdevice dev, uint32_t share,
                      uint32_t sm_count);

/* Pushes a context on the calling thread's stack: false when there is no memory. */
bool context_make_current(CUcontext handle);

/* Whether CUDA has all of these CU_CTX_... flags. */
bool context_flags_are_valid(unsigned flags);
