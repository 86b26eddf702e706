/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a fatal fault: the server is gone, but programs it served may not have noticed yet. As in
 * MPS, newcomers are turned away until those have ended. MPS waits for ever; here, a program that
 * lives on with its error holds the others up for some seconds only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon.h"

struct server;

/* A server has taken a client, or lost one in good order. */
void aftermath_attached(struct server *server, pid_t pid);
void aftermath_detached(struct server *server, pid_t pid);

/* The server has met a fault: those who are attached now are waited for. */
void aftermath_begin(struct server *server);

/* A survivor comes for another server: it had nothing to do with the fault. */
void aftermath_moved(struct daemon *daemon, pid_t pid);

/* Are there still clients of the last server of that name, which met a fault? */
bool aftermath_goes_on(struct daemon *daemon, const char *name);

/* Forgets who was attached to a server, and all that is waited for. */
void aftermath_forget_clients(struct server *server);
void aftermath_close(struct daemon *daemon);
