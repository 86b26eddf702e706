/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spare lane, SERVICE:spare. Code that a server has not seen waits for all kernels of the
 * server's context. So a program that the main lane has not had starts in the spare lane while long
 * kernels run in the main lane. A program in the main lane asks for a move before it loads code
 * (server/stream/long_work_watch.h). Both move to the main lane when no long kernels have run there
 * for a while.
 *
 * With `funnel start --spare` the lane is warm: the standby of the main lane becomes the spare lane
 * when the first program needs one (standby.h). With FUNNEL_SPARE_LANE=1 in the daemon's
 * environment it starts then, which takes a second. So it does not start before a kernel has been
 * seen in two heartbeats. Nor does it start for a program that the main lane has had, whose code is
 * there. It does not start either where a server's contexts take much of a device's memory.
 */
#pragma once

#include <stdbool.h>

#include "clock.h"

struct client_program;
struct client_record;
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

/* The program is about to load code, and its server has seen long kernels of others: orders a move
 * to the spare lane, or refuses. */
void spare_lane_ask(struct client_record *record);

/* A heartbeat of the server has come: programs may move to it from the spare lane. */
void spare_lane_return(struct server_process *main_lane);
