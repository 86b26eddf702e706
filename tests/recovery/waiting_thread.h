/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the recovery probe that waits for a stream, while the probe can be told more. */
#pragma once

#include "cuda_abi.h"

/* One at a time. */
CUresult waiting_thread_begin(CUcontext context, CUstream stream);

/* What the thread was told when the wait was over. */
CUresult waiting_thread_join(void);
