/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's default limits, from its environment. */
#pragma once

#include "client_limits.h"
#include "quota_table.h"

/* No limits, then what CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and
 * CUDA_MPS_CLIENT_PRIORITY, FUNNEL_SHOW_LIMIT, FUNNEL_LEND and FUNNEL_OVERSUBSCRIBE say. A value
 * that cannot be read is logged and left out. */
void limits_init_from_environment(struct limits *limits);

/* Takes over what FUNNEL_QUOTAS says; a list that is wrong is logged and left out. */
void quotas_change_from_environment(struct quotas *quotas);
