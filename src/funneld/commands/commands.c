/* SPDX-License-Identifier: Apache-2.0 */
/* See commands.h. */
#include "commands.h"

#include <string.h>

#include "command_protocol.h"
#include "console.h"
#include "journal.h"
#include "server_process.h"
#include "settings.h"
#include "status_query.h"
#include "text.h"

enum command_user { ANY_USER, OPERATORS };

struct command {
    const char *name;
    const char *grammar;
    enum command_user who;
    void (*run)(struct console *console, const struct grammar_values *values);
};

static const struct command commands[] = {
#define COMMAND(name, who, grammar, help) {#name, grammar, who, run_##name},
#include "command_list.h"
#undef COMMAND
#define COMMAND_V3(id, name, who, grammar, help) {name, grammar, who, run_##id},
#include "command_list_v3.h"
#undef COMMAND_V3
};

/* These commands exist only in a daemon that was started with -S. */
static bool needs_static_partitioning(const char *name)
{
    return !strcmp(name, "sm_partition") || !strcmp(name, "lspart");
}

static const struct command *find_command(const struct daemon *daemon, const char *name)
{
    if (needs_static_partitioning(name) && !daemon->partitions.on)
        return NULL;
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* A command of v3 is two words. */
static const struct command *find_command_v3(const struct daemon *daemon, char *words[], int count)
{
    char name[64];

    return count > 1 && text_format(name, sizeof(name), "%s %s", words[0], words[1])
               ? find_command(daemon, name)
               : NULL;
}

/* Whether commands of two words begin with this one. */
static bool begins_commands(const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (!strncmp(commands[i].name, word, length) && commands[i].name[length] == ' ')
            return true;
    return false;
}

static void refuse_unknown(struct console *console, char *words[], int count)
{
    const char *second = count > 1 && begins_commands(words[0]) ? words[1] : "";

    console_print(console, "Unknown command \"%.100s%s%.100s\"", words[0], *second ? " " : "",
                  second);
    if (needs_static_partitioning(words[0]))
        console_print(console, "It needs a daemon that was started with -S, for static "
                               "partitioning");
    console_done(console, COMMAND_REJECTED);
}

static void run_words(struct console *console, char *words[], int count)
{
    const struct command *v3 = find_command_v3(console->daemon, words, count);
    const struct command *command = v3 ? v3 : find_command(console->daemon, words[0]);
    char reason[GRAMMAR_REASON_MAX];
    struct grammar_values values;

    words += v3 != NULL;
    count -= v3 != NULL;
    if (!command) {
        refuse_unknown(console, words, count);
    } else if (grammar_parse(command->name, command->grammar, words + 1, count - 1, &values,
                             reason)) {
        console_answer(console, COMMAND_REJECTED, reason);
    } else if (command->who == OPERATORS && !console_is_operator(console)) {
        console_answer(console, COMMAND_REJECTED,
                       "Permission denied: this command is for root and the daemon's own user");
    } else {
        settings_begin(console, command->name, words + 1, count - 1, &values);
        command->run(console, &values);
    }
}

void commands_run(struct console *console, char *line)
{
    char *words[GRAMMAR_WORDS_MAX];
    int count;

    line[strcspn(line, "\r\n")] = '\0';
    journal("Cmd:%.500s", line);
    count = grammar_split(line, words);
    if (count < 0)
        console_answer(console, COMMAND_REJECTED, "Too many words");
    else if (count == 0)
        console_done(console, COMMAND_OK);
    else
        run_words(console, words, count);
}

bool command_report_silent(struct console *console, const struct status_query *query)
{
    bool any = false;

    for (unsigned i = 0; i < query->report_count; i++) {
        const struct command_server *report = &query->reports[i].server;
        const struct server_process *server = server_process_by_pid(console->daemon, report->pid);

        if (!server || report->responding || report->state != SERVER_ACTIVE)
            continue;
        any = true;
        if (heartbeat_process_is_stopped(server))
            console_print(console,
                          "Server %d does not answer: its process is stopped (kill -CONT %d has it "
                          "go on)",
                          report->pid, report->pid);
        else
            console_print(console, "Server %d does not answer; control.log says more", report->pid);
    }
    return any;
}

struct server_process *command_server(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = server_process_by_pid(console->daemon, values->server);

    /* A server that the console may not manage is not found, so that its existence is not told. */
    if (server && console_may_manage(console, server))
        return server;
    console_print(console, "Server %d not found", (int)values->server);
    console_done(console, COMMAND_REJECTED);
    return NULL;
}
