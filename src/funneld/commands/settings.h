/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings that operators have made by command, for the next daemon if this one is killed or
 * reloaded. They are a file beside those of servers (server_file.h), with the command lines in
 * their order. The next daemon applies its environment and its configuration file first, and then
 * gives these commands itself. A line that a later one makes needless is dropped, so the file stays
 * small.
 *
 * Static partitions have identifiers by chance, and places; so they stand there themselves. What is
 * set of one server or client stays with that server.
 */
#pragma once

#include "grammar.h"

struct console;
struct daemon;

/* For the console's command, which is about to run; `words` are those behind its name. */
void settings_begin(struct console *console, const char *command, char *const words[], int count,
                    const struct grammar_values *values);

/* The command has been answered: one that has set something is kept. */
void settings_end(struct console *console, int status);

/* Before servers are taken over: gives the commands of the daemon before. A file that is not this
 * user's alone, or not whole, is told in the log and changes nothing. */
void settings_restore(struct daemon *daemon);

/* The daemon ends by an order: the next one begins without settings. */
void settings_forget(const struct daemon *daemon);
