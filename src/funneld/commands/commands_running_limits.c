/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit: changes the limits of clients that run. It queries the servers for their clients, and
 * sends them the new limits of those that are selected; the answer has a line for each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "limits_text.h"
#include "pending_request.h"
#include "server_process.h"
#include "settings.h"
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
    pid_t server;
    pid_t pid; /* or its ID where the process id is not known */
    struct server_limits limits;
    unsigned device_count; /* of its server */
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
    char text[LIMITS_TEXT_MAX];

    limits_describe(&one->limits, one->device_count, text);
    console_print(console, "Client %d: %s", (int)one->pid, text);
}

static void on_limited(void *context, int status, const struct server_status_end *totals)
{
    struct limited_client *one = context;
    struct limit_command *command = one->command;

    if (status == 0)
        print_limits(command->console, one);
    else if (status == -ETIMEDOUT) {
        console_print(command->console, "Server %d does not answer: client %d keeps its limits",
                      (int)one->server, (int)one->pid);
        command->status = COMMAND_FAILED;
    } else
        console_print(command->console, "Client %d has left", (int)one->pid);
    command->changed += status == 0;
    free(one);
    finish_one(command);
}

static bool is_selected(const struct limit_command *command, const struct server_status_row *row)
{
    const struct server_identity *identity = &row->identity;
    const struct grammar_values *values = &command->values;

    if (grammar_given(values, GRAMMAR_CLIENT) && !status_row_is_client(row, values->client))
        return false;
    if (grammar_given(values, GRAMMAR_UID) && identity->uid != values->uid)
        return false;
    return !grammar_given(values, GRAMMAR_GROUP) || !strcmp(identity->group, values->group);
}

/* A client names its group itself, so the limits of a group never loosen those of the user. */
static void bound_by_user(const struct limit_command *command, const struct server_process *server,
                          uid_t uid, struct server_limits *limits)
{
    const struct daemon *daemon = command->console->daemon;
    struct server_limits of_server;

    limits_of_server(&server->limits, daemon->defaults.priority, &server->ready, &of_server);
    limit_rules_bound(&daemon->rules, uid, &server->ready, &of_server, limits);
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
    if (grammar_given(&command->values, GRAMMAR_GROUP))
        bound_by_user(command, server, row->identity.uid, &message.limits);
    *one = (struct limited_client){command, server->pid,
                                   row->identity.pid ? row->identity.pid : (pid_t)row->id,
                                   message.limits, server->ready.device_count};
    command->outstanding++;
    pending_request_send(server, &message, SERVER_SET_LIMITS, LIMIT_TIMEOUT_S, &handler);
}

/* ---- values that only the devices can tell to be wrong ---- */

static bool has_device(const struct status_query *query, const char *name)
{
    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned d = 0; d < query->reports[i].server.device_count; d++)
            if (device_is_named(name, &query->reports[i].server.devices[d], d))
                return true;
    return false;
}

static unsigned most_multiprocessors(const struct status_query *query)
{
    unsigned most = 0;

    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned d = 0; d < query->reports[i].server.device_count; d++)
            if (query->reports[i].server.devices[d].sm_count > most)
                most = query->reports[i].server.devices[d].sm_count;
    return most;
}

/* While no server runs the devices are unknown, and any value may turn out to be right. */
static bool check_devices(const struct limit_command *command, const struct status_query *query)
{
    const struct limit_change *change = &command->change;
    unsigned most = most_multiprocessors(query);

    if (most && change->sms > most)
        console_print(command->console, "No device has %u SMs: the largest has %u", change->sms,
                      most);
    else if (most && *change->device && !has_device(query, change->device))
        console_print(command->console, "No server has a device %s; funnel devices lists them",
                      change->device);
    else
        return true;
    return false;
}

/* ---- the command ---- */

/* Clients of the user or group that come later are bound, too. */
static bool set_rule(struct limit_command *command)
{
    const struct grammar_values *values = &command->values;

    if (grammar_given(values, GRAMMAR_CLIENT))
        return true;
    if (!limit_rules_set(&command->console->daemon->rules, values->group, values->uid,
                         &command->change)) {
        /* It is in force, whatever servers answer. */
        settings_end(command->console, COMMAND_OK);
        return true;
    }
    console_print(command->console, "No more than %d users and groups can have limits",
                  LIMIT_RULES_MAX);
    return false;
}

static void limit_clients(struct limit_command *command, const struct status_query *query)
{
    for (unsigned i = 0; i < query->report_count; i++) {
        const struct status_report *report = &query->reports[i];
        struct server_process *server =
            server_process_by_pid(command->console->daemon, report->server.pid);

        for (unsigned j = 0; server && j < report->client_count; j++)
            if (is_selected(command, &report->clients[j]))
                limit_one(command, server, &report->clients[j]);
    }
}

/* Its clients are not known; a client that is meant may be one of them. */
static void report_silent(struct limit_command *command, const struct status_query *query)
{
    bool found = command->outstanding > 1 || command->changed;

    if (!(found && grammar_given(&command->values, GRAMMAR_CLIENT)) &&
        command_report_silent(command->console, query))
        command->status = COMMAND_FAILED;
}

static bool changes_running_clients(const struct grammar_values *values)
{
    return grammar_given(values, GRAMMAR_QUOTA) || grammar_given(values, GRAMMAR_SMS) ||
           grammar_given(values, GRAMMAR_CEILING) || grammar_given(values, GRAMMAR_PRIORITY);
}

static void on_status(struct status_query *query, void *context)
{
    struct limit_command *command = context;

    if (!check_devices(command, query) || !set_rule(command)) {
        command->status = COMMAND_REJECTED;
    } else if (changes_running_clients(&command->values)) {
        limit_clients(command, query);
        report_silent(command, query);
    }
    finish_one(command);
}

/* ---- arguments ---- */

static struct limit_change change_of(const struct grammar_values *values)
{
    struct limit_change change = {
        .lifts_share = grammar_given(values, GRAMMAR_QUOTA) && !values->centipercent,
        .sm_centipercent = values->centipercent,
        .sms = values->sms,
        .sets_priority = grammar_given(values, GRAMMAR_PRIORITY),
        .sets_memory = grammar_given(values, GRAMMAR_CEILING),
        .priority = values->priority,
        .class = values->class,
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
    bool changes = changes_running_clients(values) || values->class;

    if (grammar_given(values, GRAMMAR_CHANGES) && (targets || changes))
        return "--quota is about all clients and users, and stands alone";
    if (targets != 1)
        return "Say whose limits: one of --client, --user and --group";
    if (!changes)
        return "Say what to change: --sm, --sms, --memory, --priority or --class";
    if (values->class && grammar_given(values, GRAMMAR_CLIENT))
        return "The class of a program that runs cannot change: --class needs --user or --group, "
               "and "
               "is for their later programs";
    if (grammar_given(values, GRAMMAR_QUOTA) && grammar_given(values, GRAMMAR_SMS))
        return "--sm and --sms set the same share: use one of them";
    if (grammar_given(values, GRAMMAR_DEVICE) && !grammar_given(values, GRAMMAR_CEILING))
        return "--device needs --memory";
    return NULL;
}

static bool is_about_quotas(const struct grammar_values *values)
{
    return values->given == 1ull << GRAMMAR_CHANGES;
}

void run_limit(struct console *console, const struct grammar_values *values)
{
    const char *wrong = is_about_quotas(values) ? NULL : check(values);

    if (is_about_quotas(values)) {
        change_quotas(console, values);
        return;
    }
    struct limit_command *command = wrong ? NULL : calloc(1, sizeof(*command));
    if (!wrong && !command)
        wrong = "Out of memory";

    if (!wrong)
        *command = (struct limit_command){console, *values, change_of(values), 1, 0, COMMAND_OK};
    if (!wrong && status_query_start(console->daemon, NULL, NULL, on_status, command))
        wrong = "Out of memory";
    if (!wrong)
        return;
    free(command);
    console_print(console, "%s", wrong);
    console_done(console, COMMAND_REJECTED);
}
