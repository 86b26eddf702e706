/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain after a fatal fault: the server is gone, but programs that it served may not have
 * noticed yet. As in MPS, new clients are refused until those programs have ended. MPS waits
 * without a limit; here a program that keeps running with its error delays the others for some
 * seconds only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon.h"

/* The server has taken a client, or has reported that it is gone. */
void fault_drain_attached(struct server_process *server, pid_t pid);
void fault_drain_detached(struct server_process *server, pid_t pid);

/* The server has met a fault: the clients that are attached to it now are waited for. */
void fault_drain_begin(struct server_process *server);

/* The client asks for another server: it had nothing to do with the fault, and is not waited for.
 */
void fault_drain_moved(struct daemon *daemon, pid_t pid);

/* Whether clients of the last server of that name, which met a fault, have not ended yet. */
bool fault_drain_in_progress(struct daemon *daemon, const char *name);

/* Forgets the clients of one server; all clients that are waited for. */
void fault_drain_forget_clients(struct server_process *server);
void fault_drain_close(struct daemon *daemon);
