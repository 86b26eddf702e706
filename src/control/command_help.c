/* SPDX-License-Identifier: Apache-2.0 */
/* See command_help.h. */
#include "command_help.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar.h"
#include "text.h"

const struct command_description command_descriptions[] = {
#define COMMAND(name, who, grammar, help) {#name, grammar, help},
#include "command_list.h"
#undef COMMAND
#define COMMAND_V3(id, name, who, grammar, help) {name, grammar, help},
#include "command_list_v3.h"
#undef COMMAND_V3
    {NULL, NULL, NULL},
};

bool command_is_v3(const struct command_description *command)
{
    return strchr(command->name, ' ') != NULL;
}

/* ---- help ---- */

struct writer {
    command_help_line *line;
    void *context;
};

__attribute__((format(printf, 2, 3))) static void say(const struct writer *writer,
                                                      const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    writer->line(writer->context, text);
}

static void describe_briefly(const struct writer *writer, const struct command_description *command)
{
    say(writer, "  %s%s%s", command->name, *command->grammar ? " " : "", command->grammar);
    say(writer, "      %s", command->help);
}

static void describe_command(const struct writer *writer, const struct command_description *command)
{
    say(writer, "Usage: %s%s%s", command->name, *command->grammar ? " " : "", command->grammar);
    say(writer, "%s", command->help);
    grammar_describe(command->grammar, writer->line, writer->context);
}

static void describe_all(const struct writer *writer)
{
    const struct command_description *command = command_descriptions;

    say(writer, "Commands:");
    for (; !command_is_v3(command); command++)
        describe_briefly(writer, command);
    say(writer, "%s", "");
    say(writer, "Commands of version 3, as words of the command line or on standard input:");
    for (; command->name; command++)
        describe_briefly(writer, command);
    say(writer, "%s", "");
    say(writer, "\"help COMMAND\" describes one of them.");
}

void command_help_all(command_help_line *line, void *context)
{
    describe_all(&(struct writer){line, context});
}

/* The command of that name, or those of a module: how many there are. */
static unsigned describe_named(const struct writer *writer, const char *name)
{
    size_t length = strlen(name);
    unsigned found = 0;

    for (const struct command_description *command = command_descriptions; command->name; command++)
        if (!strcmp(command->name, name)) {
            describe_command(writer, command);
            return 1;
        }
    for (const struct command_description *command = command_descriptions; command->name; command++)
        if (text_starts_with(command->name, name) && command->name[length] == ' ') {
            describe_briefly(writer, command);
            found++;
        }
    return found;
}

static bool is_module(const char *name)
{
    size_t length = strlen(name);

    for (const struct command_description *command = command_descriptions; command->name; command++)
        if (text_starts_with(command->name, name) && command->name[length] == ' ')
            return true;
    return false;
}

/* "help" is a word of its own behind a module and its verb; "--help" is anywhere. */
static bool asks_for_help(char *const words[], int count)
{
    for (int i = 1; i < count; i++)
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h"))
            return true;
    if (!strcmp(words[0], "help"))
        return true;
    return (count == 2 || count == 3) && !strcmp(words[count - 1], "help") && is_module(words[0]);
}

/* "server create" of "help server create", "server create help" and "server create x --help". */
static bool subject_of(char *const words[], int count, char name[64])
{
    int first = !strcmp(words[0], "help");
    bool two = count > first + 1 && is_module(words[first]) && *words[first + 1] != '-' &&
               strcmp(words[first + 1], "help");

    if (count <= first)
        return text_copy(name, 64, "");
    return text_format(name, 64, "%s%s%s", words[first], two ? " " : "",
                       two ? words[first + 1] : "");
}

bool command_help(char *const words[], int count, command_help_line *line, void *context,
                  bool *ret_found)
{
    struct writer writer = {line, context};
    char name[64];

    if (count == 0 || !asks_for_help(words, count))
        return false;
    if (!subject_of(words, count, name))
        *ret_found = false;
    else if (*name)
        *ret_found = describe_named(&writer, name) > 0;
    else {
        describe_all(&writer);
        *ret_found = true;
    }
    if (!*ret_found)
        say(&writer, "There is no such command; \"help\" lists them");
    return true;
}

/* ---- completion ---- */

/* The word of the command's name that follows `before`: its length, 0 when there is none. */
static size_t next_word(const struct command_description *command, const char *before,
                        const char **ret_word)
{
    size_t length = strlen(before);

    if (strncmp(command->name, before, length))
        return 0;
    *ret_word = command->name + length;
    return strcspn(*ret_word, " ");
}

static bool is_new(const struct command_description *command, const char *before, const char *word,
                   size_t length)
{
    const char *other;

    for (const struct command_description *earlier = command_descriptions; earlier < command;
         earlier++)
        if (next_word(earlier, before, &other) == length && !strncmp(other, word, length))
            return false;
    return true;
}

/* Options of the command whose name `before` begins with. */
static char *complete_option(const char *before, const char *text, unsigned nth)
{
    for (const struct command_description *command = command_descriptions; command->name;
         command++) {
        if (!text_starts_with(before, command->name) || before[strlen(command->name)] != ' ')
            continue;
        for (const char *option = strchr(command->grammar, '-'); option;
             option = strchr(option + strcspn(option, " ]"), '-')) {
            size_t length = strcspn(option, " ]=");

            length += option[length] == '=';
            if (!strncmp(option, text, strlen(text)) && strlen(text) <= length && !nth--)
                return strndup(option, length);
        }
    }
    return NULL;
}

char *command_complete(const char *before, const char *text, unsigned nth)
{
    for (const struct command_description *command = command_descriptions; command->name;
         command++) {
        const char *word;
        size_t length = next_word(command, before, &word);

        if (length >= strlen(text) && length && !strncmp(word, text, strlen(text)) &&
            is_new(command, before, word, length) && !nth--)
            return strndup(word, length);
    }
    return *text == '-' || !*text ? complete_option(before, text, nth) : NULL;
}
