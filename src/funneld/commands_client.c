/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about clients: lists of them, and ending one. All but the last are views of a survey. */
#include <stdlib.h>
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "funneld_server.h"
#include "survey.h"
#include "text.h"

#define TERMINATE_TIMEOUT_S 60
#define STATUS_LAUNCH_TIMEOUT 702 /* the server's patience has come to its end */

struct view {
    struct console *console;
    pid_t server; /* 0 = all */
    pid_t only;   /* of ps -p */
    void (*print)(const struct view *view, const struct survey_part *part);
};

static bool is_viewed(const struct server *server, const void *context)
{
    const struct view *view = context;

    return console_may_touch(view->console, server) &&
           (view->server == 0 || view->server == server->pid);
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct view *view = context;
    struct console *console = view->console;

    for (unsigned i = 0; i < survey->part_count; i++)
        view->print(view, &survey->parts[i]);
    free(view);
    console_done(console, COMMAND_OK);
}

static void show(const struct view *what)
{
    struct view *view = malloc(sizeof(*view));

    if (view) {
        *view = *what;
        if (!survey_start(what->console->daemon, is_viewed, view, on_surveyed, view))
            return;
        free(view);
    }
    console_print(what->console, "Out of memory");
    console_done(what->console, COMMAND_FAILED);
}

static void print_pids(const struct view *view, const struct survey_part *part)
{
    for (unsigned i = 0; i < part->client_count; i++)
        console_print(view->console, "%d", part->clients[i].identity.pid);
}

void run_get_client_list(struct console *console, const struct grammar_values *values)
{
    if (command_server(console, values))
        show(&(struct view){console, values->server, 0, print_pids});
}

static void print_device_pids(const struct view *view, const struct survey_part *part)
{
    for (unsigned device = 0; device < part->server.device_count; device++) {
        bool named = false;

        for (unsigned i = 0; i < part->client_count; i++) {
            if (!(part->clients[i].device_mask & (1ull << device)))
                continue;
            if (!named)
                console_print(view->console, "Device %u", device);
            named = true;
            console_print(view->console, "%d", part->clients[i].identity.pid);
        }
    }
}

void run_get_device_client_list(struct console *console, const struct grammar_values *values)
{
    if (!grammar_given(values, GRAMMAR_SERVER) || command_server(console, values))
        show(&(struct view){console, values->server, 0, print_device_pids});
}

#define PS_FORMAT "%-10s%-10s%-15s%-26s%-15s%s"

static void print_ps_row(const struct view *view, const struct survey_part *part,
                         const struct server_status_row *row, const char *device)
{
    char pid[16], id[16], server[16], space[24];

    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    text_format(id, sizeof(id), "%u", row->id);
    text_format(server, sizeof(server), "%d", part->server.pid);
    text_format(space, sizeof(space), "%llu", (unsigned long long)row->identity.pid_namespace);
    console_print(view->console, PS_FORMAT, pid, id, server, device, space, row->identity.command);
}

/* A client is shown once for each device that it uses, with the first three groups of the UUID. */
static void print_ps_client(const struct view *view, const struct survey_part *part,
                            const struct server_status_row *row)
{
    char uuid[DEVICE_UUID_TEXT];

    if (row->device_mask == 0)
        print_ps_row(view, part, row, "-");
    for (unsigned device = 0; device < part->server.device_count; device++) {
        if (!(row->device_mask & (1ull << device)))
            continue;
        device_uuid_text(&part->server.devices[device], uuid);
        uuid[strlen("GPU-302653ec-b6cc-1916")] = '\0';
        print_ps_row(view, part, row, uuid);
    }
}

static void print_ps(const struct view *view, const struct survey_part *part)
{
    for (unsigned i = 0; i < part->client_count; i++)
        if (view->only == 0 || view->only == part->clients[i].identity.pid ||
            view->only == part->server.pid)
            print_ps_client(view, part, &part->clients[i]);
}

void run_ps(struct console *console, const struct grammar_values *values)
{
    console_print(console, PS_FORMAT, "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
    show(&(struct view){console, 0, values->client, print_ps});
}

/* ---- terminate_client ---- */

static void on_terminated(void *context, int status, const struct server_status_end *totals)
{
    struct console *console = context;

    if (status < 0)
        console_print(console, "Server does not answer: %s", strerror(-status));
    else
        console_print(console, "%d", status);
    if (status == STATUS_LAUNCH_TIMEOUT)
        console_print(
            console, "The client is cut off, but a kernel of it does not end, and keeps its memory "
                     "and multiprocessors; shutdown_server -f ends it, and all others with it");
    console_done(console, status != 0);
}

void run_terminate_client(struct console *console, const struct grammar_values *values)
{
    struct server *server = command_server(console, values);
    struct server_terminate_client message = {.pid = values->client};
    struct answer answer = {NULL, on_terminated, console};

    if (server)
        server_ask(server, &message, SERVER_TERMINATE_CLIENT, TERMINATE_TIMEOUT_S, &answer);
}
