/* SPDX-License-Identifier: Apache-2.0 */
/* See commands_service.h. */
#include "commands_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "console.h"
#include "lane.h"
#include "service.h"
#include "status_query.h"
#include "text.h"
#include "timeslice.h"

/* Locality domains are two halves of a device; they are not supported. */
static bool wants_locality(const struct grammar_values *values)
{
    return grammar_given(values, GRAMMAR_BOOLEAN) && values->yes;
}

/* The server of a user exists without being created: its service is made when a command needs it.
 */
static struct service *create_for_user(struct daemon *daemon, const char *name,
                                       char reason[GRAMMAR_REASON_MAX])
{
    const struct server_process *server = server_process_find(daemon, name);
    struct service *service = NULL;
    uint64_t uid;

    if (text_to_u64(name + strlen("uid_"), &uid) || uid >= UINT32_MAX || daemon->quitting ||
        service_create(daemon, name, (uid_t)uid, "", &service, reason))
        return NULL;
    if (server && server->state == SERVER_ACTIVE)
        service_server_ready(server);
    return service;
}

struct service *command_find_service(struct daemon *daemon, const char *name,
                                     char ret_reason[GRAMMAR_REASON_MAX])
{
    struct service *service = service_find(daemon, name);

    *ret_reason = '\0';
    return !service && text_starts_with(name, "uid_") ? create_for_user(daemon, name, ret_reason)
                                                      : service;
}

struct service *command_service(struct console *console, const char *name)
{
    char reason[GRAMMAR_REASON_MAX];
    struct service *service = command_find_service(console->daemon, name, reason);

    if (service)
        return service;
    if (*reason)
        console_print(console, "%s", reason);
    else
        console_print(console, "Server '%s' not found", name);
    console_done(console, COMMAND_FAILED);
    return NULL;
}

/* ---- create ---- */

/* The user who asks owns it, where the daemon can serve more than one user. */
static uid_t owner_of(const struct console *console, const struct grammar_values *values)
{
    const struct daemon *daemon = console->daemon;

    if (grammar_given(values, GRAMMAR_UID))
        return values->uid;
    return daemon->multiuser || daemon->uid != 0 ? daemon->server_uid : console->uid;
}

void run_server_create(struct console *console, const struct grammar_values *values)
{
    struct daemon *daemon = console->daemon;
    char reason[GRAMMAR_REASON_MAX];
    struct service *service;

    if (!*values->name && !grammar_given(values, GRAMMAR_UID))
        console_answer(console, COMMAND_REJECTED, "A server needs a name, or --uid=UID");
    else if (wants_locality(values))
        console_answer(console, COMMAND_FAILED, "Locality domains are not supported");
    else if (daemon->quitting)
        console_answer(console, COMMAND_FAILED, "The daemon is quitting");
    else if (service_create(daemon, values->name, owner_of(console, values), values->devices,
                            &service, reason))
        console_answer(console, COMMAND_FAILED, reason);
    else {
        console_print(console, "Server '%s' created; its clients set CUDA_MPS_PIPE_DIRECTORY=%s",
                      service->name, service_namespace(service, NAMESPACE_DEFAULT)->directory);
        console_done(console, COMMAND_OK);
    }
}

/* ---- set ---- */

/* The user of a process cannot be changed. */
static int set_owner(struct service *service, uid_t uid, char reason[GRAMMAR_REASON_MAX])
{
    if (uid == service->uid)
        return 0;
    if (!lane_find_other(service->daemon, service->name, ""))
        return service_set_owner(service, uid, reason);
    text_format(reason, GRAMMAR_REASON_MAX,
                "Server '%.64s' runs, for user %u; its user can be changed when it has ended",
                service->name, (unsigned)service->uid);
    return -EBUSY;
}

void run_server_set(struct console *console, const struct grammar_values *values)
{
    struct service *service = command_service(console, values->name);
    char reason[GRAMMAR_REASON_MAX];

    if (!service)
        return;
    if (!(values->given & ~(1ull << GRAMMAR_NAME)))
        console_answer(console, COMMAND_REJECTED, "Nothing to set, see -h");
    else if (wants_locality(values))
        console_answer(console, COMMAND_FAILED, "Locality domains are not supported");
    else if (grammar_given(values, GRAMMAR_UID) && set_owner(service, values->uid, reason))
        console_answer(console, COMMAND_FAILED, reason);
    else {
        if (grammar_given(values, GRAMMAR_TIMESLICE))
            service->timeslice_percent = values->timeslice_percent;
        timeslices_divide(service->daemon);
        namespace_set(service_namespace(service, NAMESPACE_DEFAULT), values);
        console_done(console, COMMAND_OK);
    }
}

/* ---- delete ---- */

struct deleting {
    struct console *console;
    char name[SERVER_NAME_MAX];
    bool force;
};

static bool is_named(const struct server_process *server, const void *name)
{
    return !strcmp(server->service, name);
}

static int delete_service(const struct deleting *deleting, unsigned clients)
{
    struct console *console = deleting->console;
    struct service *service = service_find(console->daemon, deleting->name);

    if (!service) {
        console_print(console, "Server '%s' not found", deleting->name);
        return COMMAND_FAILED;
    }
    if (clients && !deleting->force) {
        console_print(console, "Server '%s' has %u client%s; terminate %s, or use --force",
                      service->name, clients, clients == 1 ? "" : "s",
                      clients == 1 ? "it" : "them");
        return COMMAND_FAILED;
    }
    service_destroy(service);
    list_for_each (struct server_process, server, &console->daemon->servers, link)
        if (server->role == SERVER_SERVING && !strcmp(server->service, deleting->name))
            server_process_stop(server, deleting->force);
    return COMMAND_OK;
}

static void on_counted(struct status_query *query, void *context)
{
    struct deleting *deleting = context;
    struct console *console = deleting->console;
    unsigned clients = 0;
    int status = COMMAND_FAILED;

    for (unsigned i = 0; i < query->report_count; i++)
        clients += query->reports[i].server.client_count;
    if (deleting->force || !command_report_silent(console, query))
        status = delete_service(deleting, clients);
    free(deleting);
    console_done(console, status);
}

void run_server_delete(struct console *console, const struct grammar_values *values)
{
    struct deleting *deleting;

    if (!service_find(console->daemon, values->name)) {
        console_print(console, "Server '%s' not found", values->name);
        console_done(console, COMMAND_FAILED);
        return;
    }
    deleting = calloc(1, sizeof(*deleting));
    if (deleting) {
        deleting->console = console;
        deleting->force = values->force;
        text_copy(deleting->name, sizeof(deleting->name), values->name);
        if (!status_query_start(console->daemon, is_named, deleting->name, on_counted, deleting))
            return;
    }
    free(deleting);
    console_answer(console, COMMAND_FAILED, "Out of memory");
}
