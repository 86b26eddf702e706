/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: moves a client to another device of its server (lane_move.h). The client comes to an
 * idle point by itself; the front end waits for a while only. */
#include <stdlib.h>

#include "client_limits.h"
#include "client_query.h"
#include "client_record.h"
#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "journal.h"
#include "lane_move.h"
#include "server_process.h"
#include "status_query.h"
#include "text.h"

#define MIGRATE_TIMEOUT_S 30 /* then the front end is told that the move goes on */

struct migration {
    struct console *console; /* NULL = its front end is not waiting any more */
    struct event *timeout;
    pid_t client;
    char device[GRAMMAR_DEVICE_MAX];
};

static void free_migration(struct migration *migration)
{
    if (migration->timeout)
        event_free(migration->timeout);
    free(migration);
}

static void end_migration(struct migration *migration, int status)
{
    struct console *console = migration->console;

    free_migration(migration);
    if (console)
        console_done(console, status);
}

/* The front end goes on, and so does the move. */
static void stop_waiting(struct migration *migration, int status)
{
    struct console *console = migration->console;

    migration->console = NULL;
    console_done(console, status);
}

static void refuse_migration(struct migration *migration, const char *why)
{
    console_print(migration->console, "Client %d %s", (int)migration->client, why);
    end_migration(migration, COMMAND_FAILED);
}

static void on_timeout(evutil_socket_t fd, short what, void *context)
{
    struct migration *migration = context;

    console_print(migration->console,
                  "Client %d has not moved to device %s yet: it has had no idle point at a CUDA "
                  "call, or its memory is being copied. The move goes on; control.log says when "
                  "it has ended",
                  (int)migration->client, migration->device);
    stop_waiting(migration, COMMAND_OK);
}

static void on_moved(void *context, int result)
{
    struct migration *migration = context;
    struct console *console = migration->console;

    if (console && result == LANE_MOVED)
        console_print(console, "Client %d is on device %s", (int)migration->client,
                      migration->device);
    else if (console)
        console_print(console, "Client %d does not move to device %s: %s", (int)migration->client,
                      migration->device, lane_move_text(result));
    end_migration(migration, result == LANE_MOVED ? COMMAND_OK : COMMAND_FAILED);
}

static bool find_device(const struct status_report *report, const char *name, uint32_t *ret_device)
{
    for (unsigned i = 0; i < report->server.device_count; i++) {
        if (!device_is_named(name, &report->server.devices[i], i))
            continue;
        *ret_device = i;
        return true;
    }
    return false;
}

static void await_end(struct migration *migration, event_callback_fn on_late)
{
    const struct timeval timeout = {.tv_sec = MIGRATE_TIMEOUT_S};

    migration->timeout = evtimer_new(migration->console->daemon->base, on_late, migration);
    if (migration->timeout)
        evtimer_add(migration->timeout, &timeout);
}

static void order_move(struct migration *migration, struct client_record *record, uint32_t device)
{
    await_end(migration, on_timeout);
    journal_with(LOG_EVENT(record->identity.pid, 0),
                 "Client %d moves to device %u at its next idle point", (int)migration->client,
                 device);
    lane_move_order_device(record, device, on_moved, migration);
}

static void on_taken_back(void *context, int result)
{
    struct migration *migration = context;
    struct console *console = migration->console;

    if (console && result == LANE_MOVED)
        console_print(console, "Client %d has moved: it was on its way already",
                      (int)migration->client);
    else if (console)
        console_print(console, "Client %d stays on device %s: its move is withdrawn",
                      (int)migration->client, migration->device);
    end_migration(migration, result == LANE_MOVED ? COMMAND_FAILED : COMMAND_OK);
}

/* Copies of its memory take their time. */
static void on_copies(evutil_socket_t fd, short what, void *context)
{
    struct migration *migration = context;

    console_print(migration->console,
                  "Client %d is on its way already; control.log says when it has moved",
                  (int)migration->client);
    stop_waiting(migration, COMMAND_FAILED);
}

/* An order to another device, or lane, may not have been followed yet. */
static void stay(struct migration *migration, const struct client_record *record)
{
    if (!lane_move_is_under_way(record)) {
        refuse_migration(migration, "is on that device already");
        return;
    }
    await_end(migration, on_copies);
    lane_move_take_back(record, on_taken_back, migration);
}

static void on_status(struct status_query *query, void *context)
{
    struct migration *migration = context;
    const struct server_status_row *row = NULL;
    const struct status_report *report = NULL;
    struct server_process *server = NULL;
    struct client_record *record = NULL;
    uint32_t device;

    bool found = status_query_find(query, migration->client, &report, &row);
    if (found && console_may_see_client(migration->console, row->identity.uid))
        server = server_process_by_pid(migration->console->daemon, report->server.pid);
    else if (!row)
        command_report_silent(migration->console, query);
    if (server)
        record = client_record_find(server, row->id);
    if (!record)
        refuse_migration(migration, row && !found ? "is the ID of several clients" : "not found");
    else if (!find_device(report, migration->device, &device))
        refuse_migration(migration, "has a server without that device; funnel devices lists them");
    else if (row->device_mask == 1ull << device)
        stay(migration, record);
    else
        order_move(migration, record, device);
}

void run_migrate(struct console *console, const struct grammar_values *values)
{
    struct migration *migration = calloc(1, sizeof(*migration));

    if (migration) {
        migration->console = console;
        migration->client = values->client;
        text_copy(migration->device, sizeof(migration->device), values->device);
        const struct client_query query = {.console = console,
                                           .client = values->client,
                                           .may_ask = console_may_see,
                                           .done = on_status,
                                           .context = migration};

        if (!client_query_start(&query))
            return;
        free(migration);
    }
    console_print(console, "Out of memory");
    console_done(console, COMMAND_FAILED);
}
