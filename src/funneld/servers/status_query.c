/* SPDX-License-Identifier: Apache-2.0 */
/* See status_query.h. */
#include "status_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_name.h"
#include "pending_request.h"
#include "server_process.h"
#include "service.h"
#include "standby.h"
#include "text.h"

#define STATUS_TIMEOUT_S 5

static void status_query_free(struct status_query *query)
{
    for (unsigned i = 0; i < query->report_count; i++)
        free(query->reports[i].clients);
    free(query->reports);
    free(query);
}

static void finish_one(struct status_query *query)
{
    if (--query->outstanding)
        return;
    query->done(query, query->context);
    status_query_free(query);
}

/* A row for which there is no memory is left out; the client count in the totals still has it. */
static void on_row(void *context, const struct server_status_row *row)
{
    struct status_report *report = context;

    if (report->client_count == report->capacity) {
        unsigned capacity = report->capacity ? report->capacity * 2 : 16;
        struct server_status_row *grown = reallocarray(report->clients, capacity, sizeof(*grown));

        if (!grown)
            return;
        report->clients = grown;
        report->capacity = capacity;
    }
    report->clients[report->client_count++] = *row;
}

static void on_end(void *context, int status, const struct server_status_end *totals)
{
    struct status_report *report = context;

    if (totals) {
        report->server.responding = 1;
        report->server.client_count = totals->client_count;
        report->server.slices_refused = totals->slices_refused;
        memcpy(report->server.memory_free, totals->memory_free, sizeof(totals->memory_free));
        report->server.code_cache = totals->code_cache;
        report->server.swap_locked = totals->swap_locked;
        report->server.swap_used = totals->swap_used;
        report->server.swap_kept = totals->swap_kept;
        for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
            report->server.sensors[i] = totals->sensors[i];
            sensors_clean(&report->server.sensors[i]);
        }
    }
    finish_one(report->query);
}

static void describe_server(const struct server_process *server, struct command_server *description)
{
    *description = (struct command_server){
        .header = {COMMAND_MAGIC, COMMAND_SERVER},
        .pid = server->pid,
        .uid = server->uid,
        .since = server->since,
        .state = server->state,
        .stopping = server->stopping,
        .driver = server->ready.driver,
        .driver_version = server->ready.driver_version,
        .device_count = server->ready.device_count,
        .max_clients = server->ready.max_clients,
        .sm_centipercent = server->limits.sm_centipercent,
        .priority = server->limits.priority,
        .silent_ms = heartbeat_silent_ms(server),
        .waited_ms = server->heartbeat.waited_ms,
    };
    text_copy(description->name, sizeof(description->name), server->name);
    text_copy(description->stall, sizeof(description->stall), server->heartbeat.text);
    text_copy(description->directory, sizeof(description->directory),
              service_directory(server->daemon, server->service));
    text_copy(description->lane, sizeof(description->lane), lane_text(server->name));
    memcpy(description->devices, server->ready.devices, sizeof(description->devices));
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        sensors_init(&description->sensors[i]);
}

static void describe_standby(const struct server_process *server,
                             struct command_server *description)
{
    const struct server_process *standby = standby_of(server);

    if (!standby)
        return;
    description->standby_pid = standby->pid;
    description->standby_ready = standby->state == SERVER_ACTIVE;
    description->standby_mib = standby_memory_mib(server);
}

/* Who looks at all servers does not wait for one that cannot answer. */
static void send_request(struct status_report *report, struct server_process *server)
{
    struct response_handler handler = {on_row, on_end, report};
    struct server_status message;

    bool reads = server->state != SERVER_INITIALIZING || server->resuming;

    if (!reads || heartbeat_is_stopped(server))
        finish_one(report->query);
    else
        pending_request_send(server, &message, SERVER_STATUS, STATUS_TIMEOUT_S, &handler);
}

static struct status_query *status_query_create(unsigned reports)
{
    struct status_query *query = calloc(1, sizeof(*query));

    if (!query)
        return NULL;
    query->reports = calloc(reports ? reports : 1, sizeof(*query->reports));
    if (query->reports)
        return query;
    free(query);
    return NULL;
}

static unsigned count_servers(const struct daemon *daemon)
{
    unsigned count = 0;

    list_for_each (struct server_process, server, &daemon->servers, link)
        count++;
    return count;
}

int status_query_start(struct daemon *daemon,
                       bool (*wanted)(const struct server_process *, const void *),
                       const void *selector, void (*done)(struct status_query *, void *),
                       void *context)
{
    struct status_query *query = status_query_create(count_servers(daemon));

    if (!query)
        return -ENOMEM;
    query->done = done;
    query->context = context;
    query->outstanding =
        1; /* this function, so that the query cannot end while it sends requests */
    list_for_each (struct server_process, server, &daemon->servers, link) {
        struct status_report *report = &query->reports[query->report_count];

        if (server->role != SERVER_SERVING || (wanted && !wanted(server, selector)))
            continue;
        query->report_count++;
        query->outstanding++;
        report->query = query;
        describe_server(server, &report->server);
        describe_standby(server, &report->server);
        send_request(report, server);
    }
    finish_one(query);
    return 0;
}

bool status_row_is_client(const struct server_status_row *row, pid_t number)
{
    return row->identity.pid ? row->identity.pid == number : row->id == (uint32_t)number;
}

/* While a program moves, two servers have it. The one that it has left may not know that yet, and
 * an order there would be lost. */
static bool is_later(const struct server_status_row *row, const struct server_status_row *before)
{
    if (row->state != before->state)
        return row->state == SERVER_CLIENT_ACTIVE;
    return (int32_t)(row->id - before->id) > 0;
}

bool status_query_find(const struct status_query *query, pid_t wanted,
                       const struct status_report **ret_report,
                       const struct server_status_row **ret_row)
{
    unsigned found = 0;

    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned j = 0; j < query->reports[i].client_count; j++) {
            const struct server_status_row *row = &query->reports[i].clients[j];

            if (!status_row_is_client(row, wanted))
                continue;
            bool again =
                found && row->identity.pid && row->identity.pid == (*ret_row)->identity.pid;
            found += !again;
            if (again && (*ret_report == &query->reports[i] || !is_later(row, *ret_row)))
                continue;
            *ret_report = &query->reports[i];
            *ret_row = row;
        }
    return found == 1;
}
