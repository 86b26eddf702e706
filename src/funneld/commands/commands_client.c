/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about clients: lists of them, ending one, and suspending one. The lists show the reports
 * of a status query. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "client_query.h"
#include "client_record.h"
#include "clock.h"
#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "departed.h"
#include "fd.h"
#include "funnel_errors.h"
#include "pending_request.h"
#include "server_process.h"
#include "status_query.h"
#include "suspend_result.h"
#include "text.h"

#define TERMINATE_TIMEOUT_S 60
#define MOVED_TIMEOUT_NS (30 * NS_PER_SEC)
#define SUSPEND_TIMEOUT_S 1200 /* for as much memory as a device has, to a slow disk */

struct client_list {
    struct console *console;
    pid_t server; /* 0 = all */
    pid_t only;   /* of ps -p */
    void (*print)(const struct client_list *list, const struct status_report *report);
};

static bool is_listed(const struct server_process *server, const void *context)
{
    const struct client_list *list = context;

    return console_may_see(list->console, server) &&
           (list->server == 0 || list->server == server->pid);
}

static void on_status(struct status_query *query, void *context)
{
    struct client_list *list = context;
    struct console *console = list->console;

    for (unsigned i = 0; i < query->report_count; i++)
        list->print(list, &query->reports[i]);
    free(list);
    console_done(console, COMMAND_OK);
}

static void show_list(const struct client_list *what)
{
    struct client_list *list = malloc(sizeof(*list));

    if (list) {
        *list = *what;
        if (!status_query_start(what->console->daemon, is_listed, list, on_status, list))
            return;
        free(list);
    }
    console_print(what->console, "Out of memory");
    console_done(what->console, COMMAND_FAILED);
}

static void print_pids(const struct client_list *list, const struct status_report *report)
{
    for (unsigned i = 0; i < report->client_count; i++)
        console_print(list->console, "%d", report->clients[i].identity.pid);
}

void run_get_client_list(struct console *console, const struct grammar_values *values)
{
    if (command_server(console, values))
        show_list(&(struct client_list){console, values->server, 0, print_pids});
}

static void print_device_pids(const struct client_list *list, const struct status_report *report)
{
    for (unsigned device = 0; device < report->server.device_count; device++) {
        bool named = false;

        for (unsigned i = 0; i < report->client_count; i++) {
            if (!(report->clients[i].device_mask & (1ull << device)) ||
                !console_may_see_client(list->console, report->clients[i].identity.uid))
                continue;
            if (!named)
                console_print(list->console, "Device %u", device);
            named = true;
            console_print(list->console, "%d", report->clients[i].identity.pid);
        }
    }
}

void run_get_device_client_list(struct console *console, const struct grammar_values *values)
{
    if (!grammar_given(values, GRAMMAR_SERVER) || command_server(console, values))
        show_list(&(struct client_list){console, values->server, 0, print_device_pids});
}

#define PS_FORMAT "%-10s%-10s%-15s%-26s%-15s%s"

static void print_ps_row(const struct client_list *list, const struct status_report *report,
                         const struct server_status_row *row, const char *device)
{
    char pid[16], id[16], server[16], space[24];

    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    text_format(id, sizeof(id), "%u", row->id);
    text_format(server, sizeof(server), "%d", report->server.pid);
    text_format(space, sizeof(space), "%llu", (unsigned long long)row->identity.pid_namespace);
    console_print(list->console, PS_FORMAT, pid, id, server, device, space, row->identity.command);
}

/* A client is shown once for each device that it uses, with the first three groups of the UUID. */
static void print_ps_client(const struct client_list *list, const struct status_report *report,
                            const struct server_status_row *row)
{
    char uuid[GPU_UUID_TEXT];

    if (row->device_mask == 0)
        print_ps_row(list, report, row, "-");
    for (unsigned device = 0; device < report->server.device_count; device++) {
        if (!(row->device_mask & (1ull << device)))
            continue;
        device_uuid_text(&report->server.devices[device], uuid);
        uuid[strlen("GPU-302653ec-b6cc-1916")] = '\0';
        print_ps_row(list, report, row, uuid);
    }
}

/* `only` is a process id or the ID of a client, or the process id of a server. */
static bool is_wanted(const struct client_list *list, const struct status_report *report,
                      const struct server_status_row *row)
{
    return console_may_see_client(list->console, row->identity.uid) &&
           (list->only == 0 || list->only == report->server.pid ||
            status_row_is_client(row, list->only));
}

static void print_ps(const struct client_list *list, const struct status_report *report)
{
    for (unsigned i = 0; i < report->client_count; i++)
        if (is_wanted(list, report, &report->clients[i]))
            print_ps_client(list, report, &report->clients[i]);
}

void run_ps(struct console *console, const struct grammar_values *values)
{
    console_print(console, PS_FORMAT, "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
    show_list(&(struct client_list){console, 0, values->client, print_ps});
}

/* ---- terminate_client ---- */

static void on_terminated(void *context, int status, const struct server_status_end *totals)
{
    struct console *console = context;

    if (status < 0)
        console_print(console, "Server does not answer: %s", strerror(-status));
    else
        console_print(console, "%d", status);
    if (status == FUNNEL_ERROR_LAUNCH_TIMEOUT)
        console_print(
            console, "The client is cut off, but a kernel of it does not end, and keeps its memory "
                     "and multiprocessors; shutdown_server -f ends it, and all others with it");
    console_done(console, status != 0);
}

struct termination {
    struct console *console;
    pid_t server; /* 0 = the one that has the client */
    pid_t client;
};

static void on_client_status(struct status_query *query, void *context)
{
    struct termination termination = *(struct termination *)context;
    struct server_terminate_client message = {.pid = termination.client};
    struct response_handler handler = {NULL, on_terminated, termination.console};
    const struct server_status_row *row = NULL;
    const struct status_report *report = NULL;
    pid_t pid = termination.server;
    struct server_process *server;

    free(context);
    bool found = status_query_find(query, termination.client, &report, &row);
    if (!row && command_report_silent(termination.console, query)) {
        console_done(termination.console, COMMAND_FAILED);
        return;
    }
    if (found) {
        pid = report->server.pid;
        message.pid = row->identity.pid;
        message.id = row->identity.pid == termination.client ? 0 : row->id;
    }
    server = server_process_by_pid(termination.console->daemon, pid);
    if (server) {
        pending_request_send(server, &message, SERVER_TERMINATE_CLIENT, TERMINATE_TIMEOUT_S,
                             &handler);
    } else if (row) {
        console_print(termination.console,
                      "Several clients have the ID %d; terminate_client SERVER CLIENT names the "
                      "server, too",
                      (int)termination.client);
        console_done(termination.console, COMMAND_FAILED);
    } else {
        console_print(termination.console, "Client %d not found", (int)termination.client);
        console_done(termination.console, COMMAND_FAILED);
    }
}

static void terminate(struct console *console, pid_t server, pid_t client)
{
    struct termination *termination = malloc(sizeof(*termination));

    if (termination) {
        *termination = (struct termination){console, server, client};
        const struct client_query query = {.console = console,
                                           .client = client,
                                           .server = server,
                                           .may_ask = console_may_manage,
                                           .done = on_client_status,
                                           .context = termination};

        if (!client_query_start(&query))
            return;
        free(termination);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}

/* A named server that does not report the client is asked for it as well, and answers that there is
 * none. */
void run_terminate_client(struct console *console, const struct grammar_values *values)
{
    struct server_process *server = command_server(console, values);

    if (server)
        terminate(console, server->pid, values->client);
}

void run_client_terminate(struct console *console, const struct grammar_values *values)
{
    terminate(console, 0, values->client);
}

/* ---- suspend, evict, resume ---- */

struct suspension {
    struct console *console;
    pid_t client;
    const char *done; /* what the client is then */
    enum server_suspend suspend;
    bool evict;
    bool has_file; /* that came with the command */
    uint64_t
        moved_end; /* clock_ns(): until then it is looked for where it has moved; 0 = not yet */
};

static void end_suspension(struct suspension *suspension, int status)
{
    struct console *console = suspension->console;
    const char *text = status < 0 ? strerror(-status) : suspend_result_text(status);

    if (status == SUSPEND_OK)
        console_print(console, "Client %d is %s", (int)suspension->client, suspension->done);
    else
        console_print(console, "Client %d is not %s: %s", (int)suspension->client, suspension->done,
                      text ? text : "its server gave an unknown answer");
    free(suspension);
    console_done_because(console, status != SUSPEND_OK, status < 0 ? SUSPEND_FAILED : status);
}

static void refuse_suspension(struct suspension *suspension, const char *why)
{
    struct console *console = suspension->console;

    console_print(console, "Client %d %s", (int)suspension->client, why);
    free(suspension);
    console_done_because(console, COMMAND_FAILED, SUSPEND_NO_CLIENT);
}

static int look_for_client(struct suspension *suspension);

/* It has left its server, and the next one has not been asked. */
static bool may_have_moved(struct suspension *suspension)
{
    const struct daemon *daemon = suspension->console->daemon;
    uint64_t now = clock_ns();

    if (!suspension->moved_end)
        suspension->moved_end = now + MOVED_TIMEOUT_NS;
    return now < suspension->moved_end && (departed_awaited(daemon, suspension->client) ||
                                           client_record_exists(daemon, suspension->client));
}

static void on_suspended(void *context, int status, const struct server_status_end *totals)
{
    struct suspension *suspension = context;

    if (status != SUSPEND_NO_CLIENT || !may_have_moved(suspension) || look_for_client(suspension))
        end_suspension(suspension, status);
}

/* The next server may have to get the file as well. */
static int send_suspension(struct suspension *suspension, struct server_process *server,
                           const struct server_status_row *row)
{
    struct server_suspend_client message = {.pid = row->identity.pid,
                                            .id = row->identity.pid == suspension->client ? 0
                                                                                          : row->id,
                                            .suspend = (uint32_t)suspension->suspend,
                                            .evict = suspension->evict};
    const struct response_handler handler = {NULL, on_suspended, suspension};
    int file = suspension->has_file ? fcntl(suspension->console->file, F_DUPFD_CLOEXEC, 0) : -1;

    if (suspension->has_file && file < 0)
        return -errno;
    pending_request_send_file(server, &message, SERVER_SUSPEND_CLIENT, file, SUSPEND_TIMEOUT_S,
                              &handler);
    return 0;
}

static void on_suspension_status(struct status_query *query, void *context)
{
    struct suspension *suspension = context;
    const struct server_status_row *row = NULL;
    const struct status_report *report = NULL;
    struct server_process *server = NULL;

    bool found = status_query_find(query, suspension->client, &report, &row);
    if (suspension->moved_end && (!row || row->state != SERVER_CLIENT_ACTIVE)) {
        end_suspension(suspension, SUSPEND_NO_CLIENT);
        return;
    }
    if (found && console_may_see_client(suspension->console, row->identity.uid))
        server = server_process_by_pid(suspension->console->daemon, report->server.pid);
    else if (!row)
        command_report_silent(suspension->console, query);
    int error = server ? send_suspension(suspension, server, row) : 0;

    if (error)
        end_suspension(suspension, error);
    else if (!server)
        refuse_suspension(suspension, row && !found ? "is the ID of several clients" : "not found");
}

static int look_for_client(struct suspension *suspension)
{
    const struct client_query query = {.console = suspension->console,
                                       .client = suspension->client,
                                       .again = suspension->moved_end != 0,
                                       .may_ask = console_may_see,
                                       .done = on_suspension_status,
                                       .context = suspension};

    return client_query_start(&query);
}

static void order_suspension(const struct suspension *order)
{
    struct console *console = order->console;
    struct suspension *suspension = malloc(sizeof(*suspension));

    if (suspension) {
        *suspension = *order;
        suspension->has_file = console->file >= 0;
        if (!look_for_client(suspension))
            return;
        free(suspension);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}

void run_suspend(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "suspended", SERVER_SUSPEND_LEAVE};

    order_suspension(&order);
}

void run_evict(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "evicted", SERVER_SUSPEND_LEAVE,
                                     .evict = true};

    order_suspension(&order);
}

void run_checkpoint(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "checkpointed", SERVER_SUSPEND_SAVE};

    order_suspension(&order);
}

void run_detach(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "detached", SERVER_SUSPEND_DETACH};

    order_suspension(&order);
}

void run_lock(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "locked", SERVER_SUSPEND_LOCK};

    order_suspension(&order);
}

void run_resume(struct console *console, const struct grammar_values *values)
{
    const struct suspension order = {console, values->client, "resumed", SERVER_SUSPEND_END};

    order_suspension(&order);
}
