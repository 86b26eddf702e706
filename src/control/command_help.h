/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The help of the commands: their names, their grammar and what they do. Help needs no daemon, so
 * the front end answers it.
 */
#pragma once

#include <stdbool.h>

struct command_description {
    const char *name; /* two words for a command of v3 */
    const char *grammar;
    const char *help;
};

/* The commands of v2, then those of v3, then one whose name is NULL. */
extern const struct command_description command_descriptions[];

/* Of v3: "server list" and so on. */
bool command_is_v3(const struct command_description *command);

typedef void command_help_line(void *context, const char *text);

/* All of them. */
void command_help_all(command_help_line *line, void *context);

/* "help", "help server", "server help", "server create help", "ps --help": whether the words ask
 * for help. Then it is given; `ret_found` tells whether there is such a command. */
bool command_help(char *const words[], int count, command_help_line *line, void *context,
                  bool *ret_found);

/* The next word that may follow the words of `before` and begins with `text`, or NULL; `nth`
 * counts the answers. Allocated. */
char *command_complete(const char *before, const char *text, unsigned nth);
