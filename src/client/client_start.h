/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver this process uses: Funnel's server, or the real driver when no daemon listens. */
#pragma once

#include <stdbool.h>

#include "cuda_result.h"

/* Whether this process uses a daemon if there is one. Opens the log for calls that need no
 * decision. */
bool client_may_use_daemons(void);

/* Decides between funnel and passthrough if that is still open: CUDA_SUCCESS, or why neither can
 * be used. From any thread; waits for the server, and for NVIDIA's driver behind that. */
CUresult client_decide(void);

/* client_decide(), and from then on every call is served. */
CUresult client_start(void);
