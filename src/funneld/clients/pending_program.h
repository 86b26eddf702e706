/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that have said hello: whether they may enter, and their way to a server. One may be
 * delayed before, or wait while its server starts or ends. A server that is lost has a replacement.
 */
#pragma once

#include "daemon.h"

struct pending_client;
struct server_process;

/* The program has said hello: admits it, at once or when programs of its user connect less often.
 * The client may be freed. */
void pending_program_greet(struct pending_client *client);

/* The delay is over. The client may be freed. */
void pending_program_admit(struct pending_client *client);

/* A front end is about to become a program, whose server is started ahead. */
void pending_program_expect(struct pending_client *client);

/* The server is ready: it gets all programs that wait for it. */
void pending_programs_server_ready(struct server_process *server);

/* The server of that name could not be started. Programs that wait for it go to another one
 * (client_routes.h), or are refused. */
void pending_programs_refuse(struct daemon *daemon, const char *name, int status, const char *text);

/* The server of that name is gone: if programs wait for it, another one is started. */
void pending_programs_server_gone(struct daemon *daemon, const char *name);
