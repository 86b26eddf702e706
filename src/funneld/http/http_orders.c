/* SPDX-License-Identifier: Apache-2.0 */
/* See http_orders.h. */
#include "http_orders.h"

#include <limits.h>
#include <string.h>

#include "http_parse.h"
#include "journal.h"
#include "pending_request.h"
#include "server_process.h"
#include "status_query.h"

#define TERMINATE_SECONDS 15
#define LIMIT_SECONDS 10
#define WHOLE_SHARE 10000u /* hundredths of a percent */

struct target {
    pid_t server, pid;
    uint32_t id;
};

static void refuse_order(struct http_request *request, int status)
{
    http_answer(request, status, "text/plain", NULL);
}

static void on_done(void *context, int status, const struct server_status_end *totals)
{
    struct evbuffer *body = evbuffer_new();

    if (body)
        evbuffer_add_printf(body, "{\"status\":%d}", status);
    http_answer(context, body ? 200 : 503, body ? "application/json" : "text/plain", body);
    if (body)
        evbuffer_free(body);
}

/* A number of 0 to `most`. */
static bool read_number(const struct http_request *request, const char *name, uint64_t most,
                        uint64_t *ret_value)
{
    return !http_query_number(request, name, ret_value) && *ret_value <= most;
}

static bool read_target(const struct http_request *request, struct target *ret_target)
{
    uint64_t server, id, pid;

    if (!read_number(request, "server", INT32_MAX, &server) ||
        !read_number(request, "id", UINT32_MAX, &id) ||
        !read_number(request, "pid", INT32_MAX, &pid) || !id)
        return false;
    *ret_target = (struct target){(pid_t)server, (pid_t)pid, (uint32_t)id};
    return true;
}

/* ---- terminating ---- */

void http_order_terminate(struct http_request *request)
{
    const struct response_handler handler = {.end = on_done, .context = request};
    struct server_terminate_client order;
    struct target target;

    if (!read_target(request, &target)) {
        refuse_order(request, 400);
        return;
    }
    struct server_process *process = server_process_by_pid(request->context, target.server);
    if (!process) {
        refuse_order(request, 404);
        return;
    }
    journal_with(LOG_ABOUT(target.pid), "Client %d (id %u) is terminated from the status page",
                 (int)target.pid, target.id);
    memset(&order, 0, sizeof(order));
    order.pid = target.pid;
    order.id = target.id;
    pending_request_send(process, &order, SERVER_TERMINATE_CLIENT, TERMINATE_SECONDS, &handler);
}

/* ---- limits ---- */

static bool read_share(const struct http_request *request, struct limit_change *change)
{
    uint64_t share;

    if (!http_query_has(request, "sm_centipercent"))
        return true;
    if (!read_number(request, "sm_centipercent", WHOLE_SHARE, &share) || !share)
        return false;
    change->lifts_share = share == WHOLE_SHARE;
    change->sm_centipercent = share == WHOLE_SHARE ? 0 : (uint32_t)share;
    return true;
}

static bool read_memory(const struct http_request *request, struct limit_change *change)
{
    change->sets_memory = http_query_has(request, "memory");
    return !change->sets_memory || read_number(request, "memory", UINT64_MAX, &change->memory);
}

static bool read_priority(const struct http_request *request, struct limit_change *change)
{
    uint64_t priority = 0;

    change->sets_priority = http_query_has(request, "priority");
    if (change->sets_priority && !read_number(request, "priority", 1, &priority))
        return false;
    change->priority = (uint32_t)priority;
    return true;
}

static bool read_change(const struct http_request *request, struct limit_change *ret_change)
{
    struct limit_change change = {0};

    if (!read_share(request, &change) || !read_memory(request, &change) ||
        !read_priority(request, &change))
        return false;
    *ret_change = change;
    return change.lifts_share || change.sm_centipercent || change.sets_memory ||
           change.sets_priority;
}

static const struct server_status_row *find_client(const struct status_query *query,
                                                   const struct target *target)
{
    for (unsigned i = 0; i < query->report_count; i++) {
        const struct status_report *report = &query->reports[i];

        for (unsigned j = 0; report->server.pid == target->server && j < report->client_count; j++)
            if (report->clients[j].id == target->id)
                return &report->clients[j];
    }
    return NULL;
}

/* The change is added to the limits that the client has now. */
static void on_status(struct status_query *query, void *context)
{
    struct http_request *request = context;
    const struct response_handler handler = {.end = on_done, .context = request};
    struct target target;
    struct limit_change change;

    if (!read_target(request, &target) || !read_change(request, &change)) {
        refuse_order(request, 400);
        return;
    }
    const struct server_status_row *row = find_client(query, &target);
    struct server_process *process = server_process_by_pid(request->context, target.server);

    if (!row || !process) {
        refuse_order(request, 404);
        return;
    }
    struct server_set_limits order = {
        .pid = row->identity.pid, .id = row->id, .limits = row->limits};
    limit_change_apply(&change, &process->ready, &order.limits);
    journal_with(LOG_ABOUT(order.pid),
                 "Limits of client %d (id %u) are changed from the status page", (int)order.pid,
                 order.id);
    pending_request_send(process, &order, SERVER_SET_LIMITS, LIMIT_SECONDS, &handler);
}

void http_order_limit(struct http_request *request)
{
    struct target target;
    struct limit_change change;

    if (!read_target(request, &target) || !read_change(request, &change))
        refuse_order(request, 400);
    else if (status_query_start(request->context, NULL, NULL, on_status, request))
        refuse_order(request, 503);
}
