/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of NVIDIA's control daemon, of MPS v2 and v3, with its grammar and its answers. */
#pragma once

#include "grammar.h"

struct console;
struct daemon;

/* Runs one line; console_done() is called when it has been answered. `line` is written to. */
void commands_run(struct console *console, char *line);

/* run_get_server_list() and so on: one handler for each command of the list. */
#define COMMAND(name, who, grammar, help) \
    void run_##name(struct console *console, const struct grammar_values *values);
#include "command_list.h"
#undef COMMAND

/* And run_server_list() and so on for those of v3. */
#define COMMAND_V3(id, name, who, grammar, help) \
    void run_##id(struct console *console, const struct grammar_values *values);
#include "command_list_v3.h"
#undef COMMAND_V3

/* limit --quota: changes quotas of all clients and users, and answers the command. */
void change_quotas(struct console *console, const struct grammar_values *values);

/* Its front end has gone: the servers need not write for it any longer. */
void end_trace(const struct console *console);

struct server_process;
struct service;
struct status_query;

/* The server with that pid, if this console may manage it; else the command is answered, and NULL
 * is returned. */
struct server_process *command_server(struct console *console, const struct grammar_values *values);

/* Says of each server that did not answer the query what it does; whether there was one. Of its
 * clients nothing is known. */
bool command_report_silent(struct console *console, const struct status_query *query);
