/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: a thread with periodic work. In each round it checks for lost contexts, and ends
 * kernels of clients that are gone (abort_launches.h). It measures the copy load (copy_load.h), and
 * runs the upkeep (upkeep.h).
 */
#pragma once

#include "server.h"

/* Starts the thread, for the life of the process. 0 or -errno. */
int watchdog_start(struct server *server);
