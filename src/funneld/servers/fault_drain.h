/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain after a fatal fault: the server is gone, but programs that it served may not have
 * noticed yet. As in MPS, new clients are refused until those programs have ended. MPS waits
 * without a limit. Here a program that keeps running with its error delays the others for some
 * seconds only. All programs that faults have affected within a minute together delay them no
 * longer than that. Programs of the user whose program has faulted are not waited for: a user could
 * keep all new programs away by faults.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon.h"
#include "server_protocol.h"

/* The server has met a fault: the clients that are attached to it now are waited for, but for those
 * of the offender's user. NULL when it is not known who the offender is. */
void fault_drain_begin(struct server_process *server, const struct server_identity *offender);

/* The client asks for another server: it had nothing to do with the fault, and is not waited for.
 */
void fault_drain_moved(struct daemon *daemon, pid_t pid);

/* Whether clients of the last server of that name, which met a fault, have not ended yet. */
bool fault_drain_in_progress(struct daemon *daemon, const char *name);

/* Forgets all clients that are waited for. */
void fault_drain_close(struct daemon *daemon);
