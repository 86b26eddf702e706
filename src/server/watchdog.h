/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: a thread that does in rounds what no client's call and no message asks for. It
 * looks for lost contexts, ends kernels of clients that are gone (abort_launches.h), measures the
 * load of copies (copy_load.h), and does the upkeep (upkeep.h).
 */
#pragma once

#include "server.h"

/* Starts the thread, for the life of the process. 0 or -errno. */
int watchdog_start(struct server *server);
