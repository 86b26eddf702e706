/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_request.h. */
#include "pending_request.h"

#include <errno.h>
#include <stdlib.h>

#include "server_process.h"

struct pending_request {
    struct list link;
    uint32_t number;
    struct event *deadline;
    struct response_handler handler;
};

static void end_request(struct pending_request *request, int status,
                        const struct server_status_end *totals)
{
    struct response_handler handler = request->handler;

    list_remove(&request->link);
    if (request->deadline)
        event_free(request->deadline);
    free(request);
    handler.end(handler.context, status, totals);
}

static void on_timeout(evutil_socket_t fd, short what, void *context)
{
    end_request(context, -ETIMEDOUT, NULL);
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
    struct timeval timeout = {.tv_sec = timeout_s};

    if (!request)
        return NULL;
    request->handler = *handler;
    request->number = ++server->last_request;
    request->deadline = evtimer_new(server->daemon->base, on_timeout, request);
    if (request->deadline)
        evtimer_add(request->deadline, &timeout);
    list_append(&server->requests, &request->link);
    return request;
}

void pending_request_send(struct server_process *server, void *message, enum server_message kind,
                          int timeout_s, const struct response_handler *handler)
{
    struct pending_request *request = add_request(server, timeout_s, handler);
    struct server_header *header = message;

    if (!request) {
        handler->end(handler->context, -ENOMEM, NULL);
        return;
    }
    *header = (struct server_header){.magic = SERVER_PROTOCOL_MAGIC,
                                     .version = SERVER_PROTOCOL_VERSION,
                                     .kind = (uint16_t)kind,
                                     .size = (uint32_t)server_message_size(kind),
                                     .request = request->number};
    if (connection_send(&server->connection, message, header->size, -1))
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
