/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of NVIDIA's control daemon (MPS v2), with its grammar and its answers. */
#pragma once

#include "grammar.h"

struct console;

/* Runs one line; console_done() is called when it has been answered. `line` is written to. */
void commands_run(struct console *console, char *line);

struct command {
    const char *name;
    const char *grammar;
    bool operators_only; /* it concerns everybody, not one's own server */
    void (*run)(struct console *console, const struct grammar_values *values);
};

/* What belongs to each file: tables that end with a name of NULL. */
extern const struct command server_commands[];
extern const struct command client_commands[];
extern const struct command limit_commands[];

struct server;

/* The server with that pid, if this console may touch it; else says so, ends the command, NULL. */
struct server *command_server(struct console *console, const struct grammar_values *values);
