/* SPDX-License-Identifier: Apache-2.0 */
/* namespace create, set and delete: groups of a named server's clients. */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "commands_service.h"
#include "console.h"
#include "pending_request.h"
#include "service.h"
#include "status_query.h"
#include "text.h"

/* The namespace, or NULL with the command answered. */
static struct mps_namespace *namespace_named(struct console *console,
                                             const struct grammar_values *values)
{
    struct service *service = command_service(console, values->name);
    struct mps_namespace *space = service ? service_namespace(service, values->space) : NULL;

    if (service && !space) {
        console_print(console, "Namespace '%s' not found", values->space);
        console_done(console, COMMAND_FAILED);
    }
    return space;
}

void run_namespace_create(struct console *console, const struct grammar_values *values)
{
    struct service *service = command_service(console, values->name);
    char reason[GRAMMAR_REASON_MAX];

    if (!service)
        return;
    if (console->daemon->quitting) {
        console_answer(console, COMMAND_FAILED, "The daemon is quitting");
    } else if (namespace_create(service, values->space, reason)) {
        console_answer(console, COMMAND_FAILED, reason);
    } else {
        console_print(console, "Namespace '%s' created; its clients set CUDA_MPS_PIPE_DIRECTORY=%s",
                      values->space, service_namespace(service, values->space)->directory);
        console_done(console, COMMAND_OK);
    }
}

void run_namespace_set(struct console *console, const struct grammar_values *values)
{
    struct mps_namespace *space = namespace_named(console, values);

    if (!space)
        return;
    if (!(values->given & ~(1ull << GRAMMAR_NAME | 1ull << GRAMMAR_NAMESPACE))) {
        console_answer(console, COMMAND_REJECTED, "Nothing to set, see -h");
        return;
    }
    namespace_set(space, values);
    console_done(console, COMMAND_OK);
}

/* ---- delete ---- */

struct deleting {
    struct console *console;
    struct grammar_values values;
};

static bool is_in(const struct deleting *deleting, const struct server_status_row *row)
{
    return !strcmp(row->identity.space, deleting->values.space);
}

static unsigned count_clients(const struct deleting *deleting, const struct status_report *report)
{
    unsigned count = 0;

    for (unsigned i = 0; i < report->client_count; i++)
        count += is_in(deleting, &report->clients[i]);
    return count;
}

/* The result is not waited for: the namespace is destroyed in any case. */
static void on_terminated(void *context, int status, const struct server_status_end *totals)
{
}

static void terminate_clients(const struct deleting *deleting, const struct status_report *report)
{
    static const struct response_handler ignored = {.end = on_terminated};
    struct server_process *server =
        server_process_by_pid(deleting->console->daemon, report->server.pid);

    for (unsigned i = 0; server && i < report->client_count; i++) {
        struct server_terminate_client message = {.pid = report->clients[i].identity.pid,
                                                  .id = report->clients[i].id};

        if (is_in(deleting, &report->clients[i]))
            pending_request_send(server, &message, SERVER_TERMINATE_CLIENT, 60, &ignored);
    }
}

static void on_counted(struct status_query *query, void *context)
{
    struct deleting *deleting = context;
    struct console *console = deleting->console;
    struct mps_namespace *space = namespace_named(console, &deleting->values);
    unsigned clients = 0;

    for (unsigned i = 0; i < query->report_count; i++)
        clients += count_clients(deleting, &query->reports[i]);
    if (space && !deleting->values.force && command_report_silent(console, query)) {
        console_done(console, COMMAND_FAILED);
    } else if (space && clients && !deleting->values.force) {
        console_print(console, "Namespace '%s' has %u client%s; terminate %s, or use --force",
                      space->name, clients, clients == 1 ? "" : "s", clients == 1 ? "it" : "them");
        console_done(console, COMMAND_FAILED);
    } else if (space) {
        for (unsigned i = 0; i < query->report_count; i++)
            terminate_clients(deleting, &query->reports[i]);
        namespace_destroy(space);
        console_done(console, COMMAND_OK);
    }
    free(deleting);
}

static bool is_named(const struct server_process *server, const void *name)
{
    return !strcmp(server->service, name);
}

void run_namespace_delete(struct console *console, const struct grammar_values *values)
{
    struct deleting *deleting;

    if (!namespace_named(console, values))
        return;
    if (!strcmp(values->space, NAMESPACE_DEFAULT)) {
        console_answer(console, COMMAND_FAILED, "The default namespace goes with its server only");
        return;
    }
    deleting = calloc(1, sizeof(*deleting));
    if (deleting) {
        *deleting = (struct deleting){console, *values};
        if (!status_query_start(console->daemon, is_named, deleting->values.name, on_counted,
                                deleting))
            return;
    }
    free(deleting);
    console_answer(console, COMMAND_FAILED, "Out of memory");
}
