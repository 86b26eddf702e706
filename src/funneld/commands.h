/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of NVIDIA's control daemon (MPS v2, and views of v3), with its grammar and its
 * answers. */
#pragma once

#include "grammar.h"

struct console;

/* Runs one line; console_done() is called when it has been answered. `line` is written to. */
void commands_run(struct console *console, char *line);

/* run_get_server_list() and so on: one handler for each command of the list. */
#define COMMAND(name, who, grammar, help) \
    void run_##name(struct console *console, const struct grammar_values *values);
#include "command_list.h"
#undef COMMAND

/* And run_server_list() and so on for those of v3. */
#define VERB(id, name, who, grammar, help) \
    void run_##id(struct console *console, const struct grammar_values *values);
#include "verb_list.h"
#undef VERB

struct server;
struct service;

/* The server with that pid, if this console may touch it; else says so, ends the command, NULL. */
struct server *command_server(struct console *console, const struct grammar_values *values);

/* The service of that name; else says so, ends the command, NULL. */
struct service *command_service(struct console *console, const char *name);
