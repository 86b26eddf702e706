/* SPDX-License-Identifier: Apache-2.0 */
/* See query.h. */
#include "query.h"

#include <unistd.h>

#include "command_protocol.h"
#include "console.h"
#include "funneld_server.h"
#include "newcomer.h"
#include "service.h"
#include "survey.h"
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
        .waiting = newcomer_count_waiting(daemon),
        .quitting = daemon->quitting,
    };

    text_copy(message.device, sizeof(message.device), daemon->device);
    text_copy(message.version, sizeof(message.version), FUNNEL_VERSION);
    text_copy(message.log_directory, sizeof(message.log_directory), daemon->paths.log);
    console_send(console, &message, sizeof(message));
}

static void send_part(struct console *console, const struct survey_part *part)
{
    struct command_client message = {.header = {COMMAND_MAGIC, COMMAND_CLIENT},
                                     .server_pid = part->server.pid};

    console_send(console, &part->server, sizeof(part->server));
    for (unsigned i = 0; i < part->client_count; i++) {
        message.row = part->clients[i];
        console_send(console, &message, sizeof(message));
    }
}

/* Those that operators have named and no process works for. */
static void send_idle_server(struct console *console, const struct service *service)
{
    struct command_server message = {.header = {COMMAND_MAGIC, COMMAND_SERVER},
                                     .uid = service->uid};

    text_copy(message.name, sizeof(message.name), service->name);
    text_copy(message.directory, sizeof(message.directory),
              service_directory(console->daemon, service->name));
    console_send(console, &message, sizeof(message));
}

static bool is_visible(const struct console *console, const struct service *service)
{
    return console_is_operator(console) ||
           (!console->daemon->multiuser && console->uid == service->uid);
}

static void send_idle_servers(struct console *console)
{
    list_for_each(struct service, service, &console->daemon->services, link)
    {
        if (is_visible(console, service) && !server_for(console->daemon, service->name))
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

/* What is set for all devices, and then a message for each that has a memory limit of its own. */
static void send_limits(struct console *console, enum command_scope scope, const char *name,
                        const struct limits *limits)
{
    struct command_limit limit = limit_of(scope, name);

    limit.sm_centipercent = limits->sm_centipercent;
    limit.sets_priority = scope == COMMAND_SCOPE_DAEMON;
    limit.priority = limits->priority;
    console_send(console, &limit, sizeof(limit));
    for (unsigned i = 0; i < limits->device_count; i++) {
        limit = limit_of(scope, name);
        limit.sets_memory = true;
        limit.memory = limits->devices[i].bytes;
        text_copy(limit.device, sizeof(limit.device), limits->devices[i].device);
        console_send(console, &limit, sizeof(limit));
    }
}

static void send_order(struct console *console, struct command_limit *limit,
                       const struct limit_order *order)
{
    limit->sm_centipercent = order->sm_centipercent;
    limit->sms = order->sms;
    limit->sets_priority = order->sets_priority;
    limit->priority = order->priority;
    limit->sets_memory = order->sets_memory;
    limit->memory = order->memory;
    text_copy(limit->device, sizeof(limit->device), order->device);
    if (limit->sm_centipercent || limit->sms || limit->sets_priority || limit->sets_memory)
        console_send(console, limit, sizeof(*limit));
}

static void send_namespaces(struct console *console, const struct service *service)
{
    list_for_each(struct mps_namespace, space, &service->namespaces, link)
    {
        struct command_limit limit = limit_of(COMMAND_SCOPE_NAMESPACE, service->name);

        text_copy(limit.space, sizeof(limit.space), space->name);
        send_order(console, &limit, &space->order);
    }
}

static void send_rule(struct console *console, const struct rule *rule)
{
    struct command_limit limit =
        limit_of(*rule->group ? COMMAND_SCOPE_GROUP : COMMAND_SCOPE_USER, rule->group);

    limit.uid = rule->uid;
    send_order(console, &limit, &rule->order);
}

static void send_all_limits(struct console *console)
{
    struct daemon *daemon = console->daemon;

    send_limits(console, COMMAND_SCOPE_DAEMON, "", &daemon->defaults);
    list_for_each(struct server, server, &daemon->servers, link)
    {
        if (console_may_touch(console, server))
            send_limits(console, COMMAND_SCOPE_SERVER, server->name, &server->limits);
    }
    list_for_each(struct service, service, &daemon->services, link)
    {
        if (is_visible(console, service))
            send_namespaces(console, service);
    }
    for (unsigned i = 0; i < daemon->rules.count && console_is_operator(console); i++)
        send_rule(console, &daemon->rules.rule[i]);
}

/* ---- the answer ---- */

static void on_surveyed(struct survey *survey, void *context)
{
    struct console *console = context;

    send_daemon(console);
    for (unsigned i = 0; i < survey->part_count; i++)
        send_part(console, &survey->parts[i]);
    send_idle_servers(console);
    send_all_limits(console);
    console_done(console, COMMAND_OK);
}

static bool may_see(const struct server *server, const void *console)
{
    return console_may_touch(console, server);
}

void query_answer(struct console *console)
{
    if (survey_start(console->daemon, may_see, console, on_surveyed, console))
        console_done(console, COMMAND_FAILED);
}
