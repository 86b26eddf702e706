/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver this process uses: Funnel's server, or the real driver when no daemon listens. */
#pragma once

#include "cuda_result.h"

/* Decides between funnel and passthrough if that is still open: CUDA_SUCCESS, or why neither can
 * be used. From any thread; waits for the server, and for NVIDIA's driver behind that. */
CUresult client_decide(void);

/* client_decide(), and from then on every call is served. */
CUresult client_start(void);
