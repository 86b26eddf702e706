/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spare lane, SERVICE:spare. Code that a server has not seen waits for all kernels of the
 * server's context. So a new program starts in the spare lane while long kernels run in the main
 * lane. It moves to the main lane when none have run there for a while.
 *
 * FUNNEL_SPARE_LANE=1 in the daemon's environment switches this on. Servers with spare contexts
 * (funnel start --spare) do without.
 */
#pragma once

#include <stdbool.h>

#include "clock.h"

struct daemon;
struct server_process;

/* Programs return after so long without long kernels in the main lane. */
#define SPARE_LANE_RETURN_NS (2 * NS_PER_SEC)

/* Whether a new program of the service is to start in the spare lane. */
bool spare_lane_is_better(const struct daemon *daemon, const char *service);

/* A heartbeat of the server has come: programs may move to it from the spare lane. */
void spare_lane_return(struct server_process *main_lane);
