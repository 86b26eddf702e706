/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit: changes the limits of clients that run. It queries the servers for their clients, and
 * sends them the new limits of those that are selected; the answer has a line for each. A client
 * whose class belongs to another lane is moved there first (lane_move.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_class.h"
#include "client_query.h"
#include "client_record.h"
#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "departed.h"
#include "journal.h"
#include "lane_move.h"
#include "limits_text.h"
#include "pending_request.h"
#include "server_process.h"
#include "settings.h"
#include "status_query.h"
#include "text.h"

#define LIMIT_TIMEOUT_S 10
#define MOVE_TIMEOUT_S 10 /* then the front end is told that the move goes on */

struct limit_command {
    struct console *console;
    struct grammar_values values;
    struct limit_change change;
    unsigned outstanding; /* responses, and this command itself */
    unsigned changed;
    int status;
};

struct limited_client {
    struct limit_command *command; /* NULL = its front end is not waiting any more */
    pid_t server;
    pid_t pid; /* or its ID where the process id is not known */
    struct server_limits limits;
    unsigned device_count; /* of its server */
    struct event *timeout; /* of a move */
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

/* It has left between the question for its limits and the order to change them. */
static bool is_on_its_way(const struct limit_command *command, const struct limited_client *one)
{
    const struct daemon *daemon = command->console->daemon;

    return departed_awaited(daemon, one->pid) || client_record_exists(daemon, one->pid);
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
    } else if (is_on_its_way(command, one)) {
        console_print(command->console,
                      "Client %d is on its way to another server: try again when it is there",
                      (int)one->pid);
        command->status = COMMAND_FAILED;
    } else
        console_print(command->console, "Client %d has left", (int)one->pid);
    command->changed += status == 0;
    free(one);
    finish_one(command);
}

/* ---- to another lane ---- */

static void free_moved(struct limited_client *one)
{
    if (one->timeout)
        event_free(one->timeout);
    free(one);
}

/* The move goes on when the front end is told the rest. */
static void on_move_timeout(evutil_socket_t fd, short what, void *context)
{
    struct limited_client *one = context;
    struct limit_command *command = one->command;

    console_print(command->console,
                  "Client %d will be of class %s: it has had no idle point yet, and moves to the "
                  "other lane at the next one; server.log says when",
                  (int)one->pid, client_class_name(one->limits.class));
    one->command = NULL;
    command->changed++;
    finish_one(command);
}

static void on_moved(void *context, int result)
{
    struct limited_client *one = context;
    struct limit_command *command = one->command;

    if (command && result == LANE_MOVED)
        console_print(command->console, "Client %d: class %s, in its lane", (int)one->pid,
                      client_class_name(one->limits.class));
    else if (command)
        console_print(command->console, "Client %d keeps its class, and stays in its lane: %s",
                      (int)one->pid, lane_move_text(result));
    free_moved(one);
    if (!command)
        return;
    command->changed++;
    command->status = result == LANE_MOVED ? command->status : COMMAND_FAILED;
    finish_one(command);
}

static void move_one(struct limit_command *command, struct client_record *record,
                     const struct server_limits *limits)
{
    const struct timeval timeout = {.tv_sec = MOVE_TIMEOUT_S};
    struct limited_client *one = calloc(1, sizeof(*one));

    if (!one) {
        command->status = COMMAND_FAILED;
        return;
    }
    *one = (struct limited_client){.command = command,
                                   .pid = record->identity.pid ? record->identity.pid
                                                               : (pid_t)record->id,
                                   .limits = *limits};
    command->outstanding++;
    one->timeout = evtimer_new(command->console->daemon->base, on_move_timeout, one);
    if (one->timeout)
        evtimer_add(one->timeout, &timeout);
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to another lane at its next idle point: its class is to be %s",
                 (int)record->identity.pid, client_class_name(limits->class));
    lane_move_order(record, limits->class, LANE_OF_CLASS, on_moved, one);
}

/* Whether the client has to move for its class. One that is there already keeps it for the time
 * after the end of its server. */
static bool follow_class(struct limit_command *command, struct server_process *server,
                         const struct server_status_row *row, struct server_limits *limits)
{
    struct client_record *record = client_record_find(server, row->id);

    limits->class = client_class_bound(limits->class, command->change.class);
    if (grammar_given(&command->values, GRAMMAR_CLIENT))
        limits->class = command->change.class;
    if (!record)
        return false;
    if (!lane_move_is_there(record, limits->class, LANE_OF_CLASS)) {
        move_one(command, record, limits);
        return true;
    }
    lane_move_withdraw(record);
    lane_move_choose(record, limits->class, LANE_OF_CLASS);
    return false;
}

/* ---- the clients ---- */

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

static bool changes_limits(const struct grammar_values *values)
{
    return grammar_given(values, GRAMMAR_QUOTA) || grammar_given(values, GRAMMAR_SMS) ||
           grammar_given(values, GRAMMAR_CEILING) || grammar_given(values, GRAMMAR_PRIORITY) ||
           grammar_given(values, GRAMMAR_OVERSUBSCRIBED) || grammar_given(values, GRAMMAR_JOINT) ||
           grammar_given(values, GRAMMAR_IDLE);
}

/* They go with the client when it moves to another server. */
static void keep_limits(struct client_record *record, const struct server_limits *limits)
{
    if (!record)
        return;
    record->has_limits = true;
    record->limits = own_limits_of(limits);
    client_record_save(record);
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
    if (command->change.class && follow_class(command, server, row, &message.limits) &&
        !changes_limits(&command->values)) {
        free(one);
        return;
    }
    limit_change_apply(&command->change, &server->ready, &message.limits);
    if (command->change.sets_joint)
        limit_change_apply_joint(&command->change,
                                 grammar_given(&command->values, GRAMMAR_UID) ? JOINT_USER
                                                                              : JOINT_GROUP,
                                 &row->identity, &server->ready, &message.limits);
    if (grammar_given(&command->values, GRAMMAR_GROUP))
        bound_by_user(command, server, row->identity.uid, &message.limits);
    if (grammar_given(&command->values, GRAMMAR_CLIENT) && changes_limits(&command->values))
        keep_limits(client_record_find(server, row->id), &message.limits);
    *one = (struct limited_client){command,
                                   server->pid,
                                   row->identity.pid ? row->identity.pid : (pid_t)row->id,
                                   message.limits,
                                   server->ready.device_count,
                                   NULL};
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

static void on_status(struct status_query *query, void *context)
{
    struct limit_command *command = context;

    if (!check_devices(command, query) || !set_rule(command)) {
        command->status = COMMAND_REJECTED;
    } else {
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
        .sets_oversubscribe = grammar_given(values, GRAMMAR_OVERSUBSCRIBED),
        .oversubscribe = values->oversubscribed,
        .sets_evict_after = grammar_given(values, GRAMMAR_IDLE),
        .evict_after = values->idle,
        .class = values->class,
        .memory = values->memory,
        .sets_joint = grammar_given(values, GRAMMAR_JOINT),
        .joint = values->joint,
    };

    text_copy(change.device, sizeof(change.device), values->device);
    text_copy(change.joint_device, sizeof(change.joint_device), values->device);
    return change;
}

/* NULL, or what is wrong. */
static const char *check(const struct grammar_values *values)
{
    unsigned targets = grammar_given(values, GRAMMAR_CLIENT) + grammar_given(values, GRAMMAR_UID) +
                       grammar_given(values, GRAMMAR_GROUP);
    bool changes = changes_limits(values) || values->class;

    if (grammar_given(values, GRAMMAR_CHANGES) && (targets || changes))
        return "--quota is about all clients and users, and stands alone";
    if (targets != 1)
        return "Say whose limits: one of --client, --user and --group";
    if (!changes)
        return "Say what to change: --sm, --sms, --memory, --joint-memory, --priority, --class, "
               "--oversubscribe or --evict-after";
    if (grammar_given(values, GRAMMAR_QUOTA) && grammar_given(values, GRAMMAR_SMS))
        return "--sm and --sms set the same share: use one of them";
    if (grammar_given(values, GRAMMAR_JOINT) && grammar_given(values, GRAMMAR_CLIENT))
        return "--joint-memory is about the programs of a user or a group together";
    if (grammar_given(values, GRAMMAR_DEVICE) && !grammar_given(values, GRAMMAR_CEILING) &&
        !grammar_given(values, GRAMMAR_JOINT))
        return "--device needs --memory or --joint-memory";
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
    const struct client_query query = {
        .console = console, .client = values->client, .done = on_status, .context = command};

    if (!wrong && client_query_start(&query))
        wrong = "Out of memory";
    if (!wrong)
        return;
    free(command);
    console_print(console, "%s", wrong);
    console_done(console, COMMAND_REJECTED);
}
