/* SPDX-License-Identifier: Apache-2.0 */
/* See client_query.h. */
#include "client_query.h"

#include <errno.h>
#include <stdlib.h>

#include "client_record.h"
#include "clock.h"
#include "console.h"
#include "departed.h"
#include "journal.h"
#include "lane_move.h"
#include "server_process.h"
#include "status_query.h"

#define PAUSE_US 20000

struct asked_query {
    struct client_query what;
    uint64_t until; /* clock_ns() */
    struct event *pause;
    bool is_logged;
};

static void free_query(struct asked_query *asked)
{
    if (asked->pause)
        event_free(asked->pause);
    free(asked);
}

static bool is_asked(const struct server_process *server, const void *context)
{
    const struct client_query *what = context;

    return (!what->may_ask || what->may_ask(what->console, server)) &&
           (!what->server || what->server == server->pid);
}

static void pause_query(struct asked_query *asked)
{
    const struct timeval pause = {.tv_usec = PAUSE_US};

    evtimer_add(asked->pause, &pause);
}

/* The record of a client whose session has begun to end. */
static const struct client_record *find_leaving(const struct client_query *what,
                                                const struct status_report *report,
                                                const struct server_status_row *row)
{
    struct server_process *server =
        server_process_by_pid(what->console->daemon, report->server.pid);
    const struct client_record *record = server ? client_record_find(server, row->id) : NULL;

    return record && (record->has_moved || lane_move_is_under_way(record)) ? record : NULL;
}

/* The client's record if it is on its way, or NULL. */
static const struct client_record *find_traveler(const struct client_query *what,
                                                 const struct status_query *query)
{
    const struct server_status_row *row = NULL;
    const struct status_report *report = NULL;
    const struct client_record *record;

    status_query_find(query, what->client, &report, &row);
    if (row && row->state == SERVER_CLIENT_ACTIVE)
        return NULL;
    record = row ? find_leaving(what, report, row)
                 : departed_awaited(what->console->daemon, what->client);
    return record && console_may_see_client(what->console, record->identity.uid) ? record : NULL;
}

static void log_wait(struct asked_query *asked, const struct client_record *record)
{
    if (!asked->is_logged)
        journal_with(LOG_ABOUT(record->identity.pid),
                     "A command for client %d waits: it is on its way from one server to the next",
                     (int)asked->what.client);
    asked->is_logged = true;
}

static void on_status(struct status_query *query, void *context)
{
    struct asked_query *asked = context;
    const struct client_query what = asked->what;
    const struct client_record *record = find_traveler(&what, query);

    if (record && clock_ns() < asked->until) {
        log_wait(asked, record);
        pause_query(asked);
        return;
    }
    free_query(asked);
    what.done(query, what.context);
}

static int ask(struct asked_query *asked)
{
    return status_query_start(asked->what.console->daemon, is_asked, &asked->what, on_status,
                              asked);
}

static void on_pause(evutil_socket_t fd, short what, void *context)
{
    struct asked_query *asked = context;

    if (ask(asked))
        pause_query(asked);
}

int client_query_start(const struct client_query *what)
{
    struct asked_query *asked = calloc(1, sizeof(*asked));

    if (!asked)
        return -ENOMEM;
    asked->what = *what;
    asked->until = clock_ns() + CLIENT_QUERY_TIMEOUT_S * NS_PER_SEC;
    asked->pause = evtimer_new(what->console->daemon->base, on_pause, asked);
    if (!asked->pause || (!what->again && ask(asked))) {
        free_query(asked);
        return -ENOMEM;
    }
    if (what->again)
        pause_query(asked);
    return 0;
}
