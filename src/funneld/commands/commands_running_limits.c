/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit: changes the limits of clients that run. It queries the servers for their clients, and
 * sends them the new limits of those that are selected; the answer has a line for each.
 */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "pending_request.h"
#include "server_process.h"
#include "status_query.h"
#include "text.h"

#define LIMIT_TIMEOUT_S 10

struct limit_command {
    struct console *console;
    struct grammar_values values;
    struct limit_change change;
    unsigned outstanding; /* responses, and this command itself */
    unsigned changed;
    int status;
};

struct limited_client {
    struct limit_command *command;
    pid_t pid;
    struct server_limits limits;
};

static void finish_one(struct limit_command *command)
{
    bool lasting = grammar_given(&command->values, GRAMMAR_UID) ||
                   grammar_given(&command->values, GRAMMAR_GROUP);

    if (--command->outstanding)
        return;
    if (command->changed == 0 && command->status == COMMAND_OK && !lasting) {
        console_print(command->console, "There is no such client");
        command->status = COMMAND_FAILED;
    }
    console_done(command->console, command->status);
    free(command);
}

static void print_limits(struct console *console, const struct limited_client *one)
{
    const struct server_limits *limits = &one->limits;
    const char *priority = limits->priority ? "below normal" : "normal";

    if (limits->fixed_only)
        console_print(console, "Client %d: its static partition, %s priority", (int)one->pid,
                      priority);
    else
        console_print(console, "Client %d: %u.%u %% of the SMs, %s priority", (int)one->pid,
                      limits->sm_centipercent / 100, limits->sm_centipercent % 100 / 10, priority);
}

static void on_limited(void *context, int status, const struct server_status_end *totals)
{
    struct limited_client *one = context;
    struct limit_command *command = one->command;

    if (status == 0)
        print_limits(command->console, one);
    else
        console_print(command->console, "Client %d has left", (int)one->pid);
    command->changed += status == 0;
    free(one);
    finish_one(command);
}

static bool is_selected(const struct limit_command *command, const struct server_identity *identity)
{
    const struct grammar_values *values = &command->values;

    if (grammar_given(values, GRAMMAR_CLIENT) && identity->pid != values->client)
        return false;
    if (grammar_given(values, GRAMMAR_UID) && identity->uid != values->uid)
        return false;
    return !grammar_given(values, GRAMMAR_GROUP) || !strcmp(identity->group, values->group);
}

static void limit_one(struct limit_command *command, struct server_process *server,
                      const struct server_status_row *row)
{
    struct limited_client *one = calloc(1, sizeof(*one));
    struct server_set_limits message = {
        .pid = row->identity.pid, .id = row->id, .limits = row->limits};
    struct response_handler handler = {NULL, on_limited, one};

    if (!one) {
        command->status = COMMAND_FAILED;
        return;
    }
    limit_change_apply(&command->change, &server->ready, &message.limits);
    *one = (struct limited_client){command, row->identity.pid, message.limits};
    command->outstanding++;
    pending_request_send(server, &message, SERVER_SET_LIMITS, LIMIT_TIMEOUT_S, &handler);
}

static void on_status(struct status_query *query, void *context)
{
    struct limit_command *command = context;

    for (unsigned i = 0; i < query->report_count; i++) {
        const struct status_report *report = &query->reports[i];
        struct server_process *server =
            server_process_by_pid(command->console->daemon, report->server.pid);

        for (unsigned j = 0; server && j < report->client_count; j++)
            if (is_selected(command, &report->clients[j].identity))
                limit_one(command, server, &report->clients[j]);
    }
    finish_one(command);
}

/* ---- arguments ---- */

static struct limit_change change_of(const struct grammar_values *values)
{
    struct limit_change change = {
        .sm_centipercent = values->centipercent,
        .sms = values->sms,
        .sets_priority = grammar_given(values, GRAMMAR_PRIORITY),
        .sets_memory = grammar_given(values, GRAMMAR_CEILING),
        .priority = values->priority,
        .memory = values->memory,
    };

    text_copy(change.device, sizeof(change.device), values->device);
    return change;
}

/* NULL, or what is wrong. */
static const char *check(const struct grammar_values *values)
{
    unsigned targets = grammar_given(values, GRAMMAR_CLIENT) + grammar_given(values, GRAMMAR_UID) +
                       grammar_given(values, GRAMMAR_GROUP);
    bool changes = grammar_given(values, GRAMMAR_PERCENT) || grammar_given(values, GRAMMAR_SMS) ||
                   grammar_given(values, GRAMMAR_CEILING) ||
                   grammar_given(values, GRAMMAR_PRIORITY);

    if (targets != 1)
        return "Say whose limits: one of -client, -user and -group";
    if (!changes)
        return "Say what to change: -sm, -sms, -memory or -priority";
    if (grammar_given(values, GRAMMAR_PERCENT) && grammar_given(values, GRAMMAR_SMS))
        return "-sm and -sms say the same in two ways: use one of them";
    if (grammar_given(values, GRAMMAR_DEVICE) && !grammar_given(values, GRAMMAR_CEILING))
        return "-device goes with -memory";
    return NULL;
}

/* Clients of the user or group that come later are bound, too. NULL, or what is wrong. */
static const char *set_rule(struct limit_command *command)
{
    const struct grammar_values *values = &command->values;

    if (grammar_given(values, GRAMMAR_CLIENT))
        return NULL;
    return limit_rules_set(&command->console->daemon->rules, values->group, values->uid,
                           &command->change)
               ? "No more users and groups can have limits"
               : NULL;
}

void run_limit(struct console *console, const struct grammar_values *values)
{
    struct limit_command *command = calloc(1, sizeof(*command));
    const char *wrong = command ? check(values) : "Out of memory";

    if (!wrong) {
        *command = (struct limit_command){console, *values, change_of(values), 1, 0, COMMAND_OK};
        wrong = set_rule(command);
    }
    if (!wrong && status_query_start(console->daemon, NULL, NULL, on_status, command))
        wrong = "Out of memory";
    if (!wrong)
        return;
    free(command);
    console_print(console, "%s", wrong);
    console_done(console, COMMAND_REJECTED);
}
