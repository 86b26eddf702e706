/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spare lane, SERVICE:spare. Code that a server has not seen waits for all kernels of the
 * server's context. So a program that the main lane has not had starts in the spare lane while long
 * kernels run in the main lane. It moves to the main lane when none have run there for a while.
 *
 * A program that the main lane has had starts there, because its code is there. A kernel of any
 * length does not delay it, and the start of a lane takes a second. That is also why no lane starts
 * for a kernel before it has been seen in two heartbeats.
 *
 * FUNNEL_SPARE_LANE=1 in the daemon's environment switches this on. Servers with spare contexts
 * (funnel start --spare) do without, and so do those whose contexts take much of a device's memory.
 */
#pragma once

#include <stdbool.h>

#include "clock.h"

struct client_program;
struct daemon;
struct server_process;

/* A lane starts for kernels that have been seen for so long: in two heartbeats. */
#define SPARE_LANE_START_NS (400 * NS_PER_MS)

/* A program that is still there has loaded its code after this time. */
#define SPARE_LANE_LOADED_NS (5 * NS_PER_SEC)

/* Programs return after so long without long kernels in the main lane. */
#define SPARE_LANE_RETURN_NS (2 * NS_PER_SEC)

/* Whether a new program of the service is to start in the spare lane. */
bool spare_lane_is_better(const struct daemon *daemon, const char *service,
                          const struct client_program *program);

/* A heartbeat of the server has come: programs may move to it from the spare lane. */
void spare_lane_return(struct server_process *main_lane);
