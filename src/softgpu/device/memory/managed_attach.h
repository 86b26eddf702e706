/* SPDX-License-Identifier: Apache-2.0 */
/* cuStreamAttachMemAsync, and the flags of cuMemAllocManaged: CU_MEM_ATTACH_... */
#pragma once

#include "soft_memory.h"

struct stream;

/* Fresh memory is attached so. Both functions need soft_lock. */
void managed_attach_first_locked(struct memory *memory, unsigned flags);

/* It will be when the stream comes to it. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult managed_attach_locked(struct memory *memory, unsigned flags, struct stream *stream);
