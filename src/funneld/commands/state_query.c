/* SPDX-License-Identifier: Apache-2.0 */
/* See state_query.h. */
#include "state_query.h"

#include <unistd.h>

#include "command_protocol.h"
#include "console.h"
#include "metrics_text.h"
#include "pid_viewer.h"
#include "server_process.h"
#include "service.h"
#include "status_query.h"
#include "text.h"

static void send_daemon(struct console *console)
{
    const struct daemon *daemon = console->daemon;
    struct command_daemon message = {
        .header = {COMMAND_MAGIC, COMMAND_DAEMON},
        .pid = getpid(),
        .uid = daemon->uid,
        .since = daemon->since,
        .sm_centipercent = daemon->defaults.sm_centipercent,
        .priority = daemon->defaults.priority,
        .waiting = daemon->waiting_clients,
        .quitting = daemon->quitting,
        .multiuser = daemon->multiuser,
        .static_partitioning = daemon->partitions.on,
    };

    text_copy(message.device, sizeof(message.device), daemon->device);
    text_copy(message.version, sizeof(message.version), FUNNEL_VERSION);
    text_copy(message.log_directory, sizeof(message.log_directory), daemon->paths.log);
    console_send(console, &message, sizeof(message));
}

static void send_report(struct console *console, const struct status_report *report,
                        const struct pid_viewer *viewer)
{
    struct command_client message = {.header = {COMMAND_MAGIC, COMMAND_CLIENT},
                                     .server_pid = report->server.pid};
    struct command_server server = report->server;

    server.seen_pid = pid_seen_by(viewer, server.pid);
    console_send(console, &server, sizeof(server));
    for (unsigned i = 0; i < report->client_count; i++) {
        message.row = report->clients[i];
        message.seen_pid = pid_seen_by(viewer, message.row.identity.pid);
        if (console_may_see_client(console, message.row.identity.uid))
            console_send(console, &message, sizeof(message));
    }
}

/* Services for which no server process runs. */
static void send_idle_server(struct console *console, const struct service *service)
{
    struct command_server message = {.header = {COMMAND_MAGIC, COMMAND_SERVER},
                                     .uid = service->uid};

    text_copy(message.name, sizeof(message.name), service->name);
    text_copy(message.directory, sizeof(message.directory),
              service_directory(console->daemon, service->name));
    console_send(console, &message, sizeof(message));
}

static void send_idle_servers(struct console *console)
{
    list_for_each (struct service, service, &console->daemon->services, link) {
        if (console_may_manage_service(console, service) &&
            !server_process_find(console->daemon, service->name))
            send_idle_server(console, service);
    }
}

/* ---- limits ---- */

static struct command_limit limit_of(enum command_scope scope, const char *name)
{
    struct command_limit limit = {.header = {COMMAND_MAGIC, COMMAND_LIMIT}, .scope = scope};

    text_copy(limit.name, sizeof(limit.name), name);
    return limit;
}

/* The settings for all devices, and then a message for each that has a memory limit of its own. */
static void send_limits(struct console *console, enum command_scope scope, const char *name,
                        const struct limits *limits)
{
    struct command_limit limit = limit_of(scope, name);

    limit.sm_centipercent = limits->sm_centipercent;
    limit.sets_priority = scope == COMMAND_SCOPE_DAEMON;
    limit.priority = limits->priority;
    limit.sets_oversubscribe = limits->oversubscribe;
    limit.oversubscribe = limits->oversubscribe;
    limit.sets_evict_after = limits->evict_after != 0;
    limit.evict_after = limits->evict_after;
    console_send(console, &limit, sizeof(limit));
    for (unsigned i = 0; i < limits->device_count; i++) {
        limit = limit_of(scope, name);
        limit.sets_memory = true;
        limit.memory = limits->devices[i].bytes;
        text_copy(limit.device, sizeof(limit.device), limits->devices[i].device);
        console_send(console, &limit, sizeof(limit));
    }
}

static void send_change(struct console *console, struct command_limit *limit,
                        const struct limit_change *change)
{
    limit->sm_centipercent = change->lifts_share ? 10000 : change->sm_centipercent;
    limit->sms = change->sms;
    limit->sets_priority = change->sets_priority;
    limit->priority = change->priority;
    limit->class = change->class;
    limit->sets_oversubscribe = change->sets_oversubscribe;
    limit->oversubscribe = change->oversubscribe;
    limit->sets_memory = change->sets_memory;
    limit->memory = change->memory;
    text_copy(limit->device, sizeof(limit->device), change->device);
    limit->sets_joint = change->sets_joint;
    limit->joint = change->joint;
    limit->sets_evict_after = change->sets_evict_after;
    limit->evict_after = change->evict_after;
    text_copy(limit->joint_device, sizeof(limit->joint_device), change->joint_device);
    if (limit->sm_centipercent || limit->sms || limit->sets_priority || limit->sets_memory ||
        limit->class || limit->sets_oversubscribe || limit->sets_joint || limit->sets_evict_after)
        console_send(console, limit, sizeof(*limit));
}

static void send_namespaces(struct console *console, const struct service *service)
{
    list_for_each (struct mps_namespace, space, &service->namespaces, link) {
        struct command_limit limit = limit_of(COMMAND_SCOPE_NAMESPACE, service->name);

        text_copy(limit.space, sizeof(limit.space), space->name);
        send_change(console, &limit, &space->change);
    }
}

static bool is_unlimited(const struct limits *limits)
{
    return limits->sm_centipercent == 10000 && !limits->priority && !limits->device_count;
}

/* Whether no limit is left that a rule could lift. */
static bool all_is_unlimited(const struct daemon *daemon)
{
    list_for_each (struct server_process, server, &daemon->servers, link)
        if (!is_unlimited(&server->limits))
            return false;
    return is_unlimited(&daemon->defaults);
}

/* A rule that lifts limits stays, because there may be some to lift later. */
static bool lifts_only(const struct limit_change *change)
{
    return !change->sm_centipercent && !change->sms && !change->priority && !change->memory &&
           !change->class && !change->sets_oversubscribe && !change->joint && !change->evict_after;
}

static void send_rule(struct console *console, const struct limit_rule *rule)
{
    if (lifts_only(&rule->change) && all_is_unlimited(console->daemon))
        return;
    struct command_limit limit =
        limit_of(*rule->group ? COMMAND_SCOPE_GROUP : COMMAND_SCOPE_USER, rule->group);

    limit.uid = rule->uid;
    send_change(console, &limit, &rule->change);
}

static void send_all_limits(struct console *console)
{
    struct daemon *daemon = console->daemon;

    send_limits(console, COMMAND_SCOPE_DAEMON, "", &daemon->defaults);
    list_for_each (struct server_process, server, &daemon->servers, link) {
        if (server->role == SERVER_SERVING && console_may_manage(console, server))
            send_limits(console, COMMAND_SCOPE_SERVER, server->name, &server->limits);
    }
    list_for_each (struct service, service, &daemon->services, link) {
        if (console_may_manage_service(console, service))
            send_namespaces(console, service);
    }
    for (unsigned i = 0; i < daemon->rules.count && console_is_operator(console); i++)
        send_rule(console, &daemon->rules.rule[i]);
}

static void send_quotas(struct console *console)
{
    const struct quotas *quotas = &console->daemon->quotas;
    struct quotas initial;

    quotas_init(&initial);
    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        struct command_quota message = {.header = {COMMAND_MAGIC, COMMAND_QUOTA},
                                        .unit = quota_rows[i].unit,
                                        .value = quotas->value[i],
                                        .initial = initial.value[i]};

        text_copy(message.name, sizeof(message.name), quota_rows[i].name);
        text_copy(message.owner, sizeof(message.owner), quota_owner(i));
        console_send(console, &message, sizeof(message));
    }
}

/* ---- the answer ---- */

static void on_status(struct status_query *query, void *context)
{
    struct console *console = context;
    struct pid_viewer viewer = pid_viewer_of(console->pid);

    send_daemon(console);
    for (unsigned i = 0; i < query->report_count; i++)
        send_report(console, &query->reports[i], &viewer);
    send_idle_servers(console);
    send_all_limits(console);
    send_quotas(console);
    console_done(console, COMMAND_OK);
}

/* ---- as metrics ---- */

static void on_metrics_status(struct status_query *query, void *context)
{
    struct console *console = context;
    const struct metrics_view view = {
        .shows_commands = true, .is_one_user = !console_is_operator(console), .uid = console->uid};
    struct command_text piece = {.header = {COMMAND_MAGIC, COMMAND_OUTPUT}};
    struct evbuffer *text = evbuffer_new();
    int size;

    if (text)
        metrics_text_add(text, console->daemon, query, &view);
    while (text && (size = evbuffer_remove(text, piece.text, sizeof(piece.text) - 1)) > 0)
        console_send(console, &piece, sizeof(piece.header) + (size_t)size);
    console_done(console, text ? COMMAND_OK : COMMAND_FAILED);
    if (text)
        evbuffer_free(text);
}

static bool may_see(const struct server_process *server, const void *console)
{
    return console_may_see(console, server);
}

void state_query_answer(struct console *console)
{
    if (status_query_start(console->daemon, may_see, console, on_status, console))
        console_done(console, COMMAND_FAILED);
}

void state_query_answer_metrics(struct console *console)
{
    if (status_query_start(console->daemon, may_see, console, on_metrics_status, console))
        console_done(console, COMMAND_FAILED);
}
