/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_request.h. */
#include "pending_request.h"

#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "server_process.h"

#define TICKS_A_SECOND 2

struct pending_request {
    struct list link;
    struct server_process *server;
    uint32_t number;
    unsigned ticks; /* that are left */
    struct event *timer;
    struct response_handler handler;
};

static void end_request(struct pending_request *request, int status,
                        const struct server_status_end *totals)
{
    struct response_handler handler = request->handler;

    list_remove(&request->link);
    if (request->timer)
        event_free(request->timer);
    free(request);
    handler.end(handler.context, status, totals);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct pending_request *request = context;

    if (--request->ticks == 0 || heartbeat_process_is_stopped(request->server))
        end_request(request, -ETIMEDOUT, NULL);
}

static struct pending_request *find_request(struct server_process *server, uint32_t number)
{
    list_for_each (struct pending_request, request, &server->requests, link) {
        if (request->number == number)
            return request;
    }
    return NULL;
}

static struct pending_request *add_request(struct server_process *server, int timeout_s,
                                           const struct response_handler *handler)
{
    struct pending_request *request = calloc(1, sizeof(*request));
    const struct timeval period = {.tv_usec = 1000000 / TICKS_A_SECOND};

    if (!request)
        return NULL;
    request->server = server;
    request->handler = *handler;
    request->number = ++server->last_request;
    request->ticks = (unsigned)timeout_s * TICKS_A_SECOND;
    request->timer = event_new(server->daemon->base, -1, EV_PERSIST, on_tick, request);
    if (request->timer)
        event_add(request->timer, &period);
    list_append(&server->requests, &request->link);
    return request;
}

void pending_request_send(struct server_process *server, void *message, enum server_message kind,
                          int timeout_s, const struct response_handler *handler)
{
    pending_request_send_file(server, message, kind, -1, timeout_s, handler);
}

void pending_request_send_file(struct server_process *server, void *message,
                               enum server_message kind, int fd, int timeout_s,
                               const struct response_handler *handler)
{
    _cleanup_fd_ int file = fd;
    bool stopped = heartbeat_process_is_stopped(server);
    struct pending_request *request = stopped ? NULL : add_request(server, timeout_s, handler);
    struct server_header *header = message;

    if (!request) {
        handler->end(handler->context, stopped ? -ETIMEDOUT : -ENOMEM, NULL);
        return;
    }
    *header = (struct server_header){.magic = SERVER_PROTOCOL_MAGIC,
                                     .version = SERVER_PROTOCOL_VERSION,
                                     .kind = (uint16_t)kind,
                                     .size = (uint32_t)server_message_size(kind),
                                     .request = request->number};
    if (connection_send(&server->connection, message, header->size, fd_steal(&file)))
        end_request(request, -EPIPE, NULL);
}

void pending_requests_end(struct server_process *server)
{
    list_for_each_safe (struct pending_request, request, &server->requests, link)
        end_request(request, -EPIPE, NULL);
}

void pending_request_row(struct server_process *server, const struct server_status_row *message)
{
    struct pending_request *request = find_request(server, message->header.request);

    if (request && request->handler.row)
        request->handler.row(request->handler.context, message);
}

void pending_request_answered(struct server_process *server, uint32_t number, int status,
                              const struct server_status_end *totals)
{
    struct pending_request *request = find_request(server, number);

    if (request)
        end_request(request, status, totals);
}
