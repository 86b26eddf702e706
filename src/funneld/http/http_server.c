/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: each reads one request, is answered, and ends when the answer has been sent. */
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_parse.h"
#include "http_token.h"
#include "inherited.h"
#include "journal.h"
#include "list.h"
#include "text.h"

/* Of the machine itself, and as many of others: neither can take the other's. */
#define CONNECTIONS_MAX 48u
#define WAITING_MAX 16u
#define REQUEST_BYTES_MAX 8192u
#define CONNECTION_SECONDS 10
#define PAUSE_US 100000

struct http_server {
    struct evconnlistener *listener;
    struct event *pause;
    bool is_short;           /* of descriptors, since the last connection */
    struct list connections; /* the oldest first */
    http_handler *handle;
    void *context;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* of a Unix socket, or "" */
};

struct http_connection {
    struct http_request request; /* first, so that a request is its connection */
    struct list link;
    struct http_server *server; /* NULL once that has stopped */
    struct bufferevent *stream; /* NULL once the peer has gone */
    struct event *deadline;
    bool is_remote;
    bool is_read, is_answered;
};

static void close_stream(struct http_connection *connection)
{
    if (connection->stream)
        bufferevent_free(connection->stream);
    connection->stream = NULL;
    if (connection->deadline)
        event_free(connection->deadline);
    connection->deadline = NULL;
}

static void free_connection(struct http_connection *connection)
{
    close_stream(connection);
    if (connection->server)
        list_remove(&connection->link);
    free(connection);
}

static bool is_waiting(const struct http_connection *connection)
{
    return connection->is_read && !connection->is_answered;
}

/* A request that is being answered stays until it has been. */
static void end_connection(struct http_connection *connection)
{
    if (is_waiting(connection))
        close_stream(connection);
    else
        free_connection(connection);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    end_connection(context);
}

static void on_end(struct bufferevent *stream, short what, void *context)
{
    end_connection(context);
}

static void discard(struct bufferevent *stream, void *context)
{
    struct evbuffer *input = bufferevent_get_input(stream);

    evbuffer_drain(input, evbuffer_get_length(input));
}

/* A connection with unread bytes would be reset, and the answer lost. So the peer
 * closes it, or the deadline comes. */
static void on_sent(struct bufferevent *stream, void *context)
{
    shutdown(bufferevent_getfd(stream), SHUT_WR);
}

/* ---- the request ---- */

static void refuse_request(struct http_connection *connection, int status)
{
    connection->is_read = true;
    http_answer(&connection->request, status, "text/plain", NULL);
}

/* The token's owner is answered however many others wait. */
static bool may_wait(const struct http_connection *connection)
{
    unsigned waiting = 0;

    if (connection->request.is_operator)
        return true;
    list_for_each (struct http_connection, other, &connection->server->connections, link)
        waiting += other->is_remote == connection->is_remote && is_waiting(other) &&
                   !other->request.is_operator;
    return waiting < WAITING_MAX;
}

/* A browser's page cannot come by a Unix socket, so there the host is whatever its user likes. */
static void take_request(struct http_connection *connection)
{
    struct http_request *request = &connection->request;

    request->is_operator = http_token_fits(request->token);
    if (*connection->server->path)
        *request->host = '\0';
    if (!may_wait(connection)) {
        refuse_request(connection, 503);
        return;
    }
    connection->is_read = true;
    connection->server->handle(request);
}

static void on_readable(struct bufferevent *stream, void *context)
{
    struct http_connection *connection = context;
    struct evbuffer *input = bufferevent_get_input(stream);
    struct evbuffer_ptr stop = evbuffer_search(input, "\r\n\r\n", 4, NULL);
    char text[REQUEST_BYTES_MAX + 1];

    if (connection->is_read)
        return;
    if (stop.pos < 0 || stop.pos >= (ev_ssize_t)REQUEST_BYTES_MAX) {
        if (evbuffer_get_length(input) >= REQUEST_BYTES_MAX)
            refuse_request(connection, 431);
        return;
    }
    evbuffer_remove(input, text, (size_t)stop.pos);
    text[stop.pos] = '\0';
    int status = http_parse(text, (size_t)stop.pos, &connection->request);
    if (status)
        refuse_request(connection, status);
    else
        take_request(connection);
}

/* ---- the answer ---- */

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 421:
        return "Misdirected Request";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    }
    return "Internal Server Error";
}

/* The page may load nothing from elsewhere, and no other page may show it in a frame. */
static const char headers[] = "Connection: close\r\n"
                              "Cache-Control: no-store\r\n"
                              "X-Content-Type-Options: nosniff\r\n"
                              "Referrer-Policy: no-referrer\r\n"
                              "Content-Security-Policy: default-src 'none'; style-src "
                              "'self'; script-src 'self'; connect-src 'self'; img-src data:; "
                              "base-uri 'none'; form-action 'none'; "
                              "frame-ancestors 'none'\r\n\r\n";

void http_answer(struct http_request *request, int status, const char *type, struct evbuffer *body)
{
    struct http_connection *connection = (struct http_connection *)request;

    connection->is_answered = true;
    if (!connection->stream) {
        free_connection(connection);
        return;
    }
    struct evbuffer *output = bufferevent_get_output(connection->stream);
    const char *reason = reason_of(status);
    size_t size = body ? evbuffer_get_length(body) : strlen(reason) + 1;

    evbuffer_add_printf(output, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s",
                        status, reason, type, size, headers);
    if (body && !request->is_head)
        evbuffer_add_buffer(output, body);
    else if (!request->is_head)
        evbuffer_add_printf(output, "%s\n", reason);
    discard(connection->stream, connection);
    bufferevent_setcb(connection->stream, discard, on_sent, on_end, connection);
}

/* ---- connections ---- */

static bool is_of_this_machine(const struct sockaddr *address)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;

    if (address->sa_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
    return address->sa_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* Closes the oldest one that costs its peer nothing but a new try, when there are as many as there
 * may be. False when all are being answered. */
static bool make_room(struct http_server *server, bool is_remote)
{
    struct http_connection *oldest = NULL;
    unsigned count = 0;

    list_for_each (struct http_connection, connection, &server->connections, link) {
        if (connection->is_remote != is_remote)
            continue;
        count++;
        if (!oldest && !is_waiting(connection) && !connection->request.is_operator)
            oldest = connection;
    }
    if (count < CONNECTIONS_MAX)
        return true;
    if (oldest)
        free_connection(oldest);
    return oldest != NULL;
}

static bool open_connection(struct http_connection *connection, struct event_base *base, int fd)
{
    const struct timeval limit = {.tv_sec = CONNECTION_SECONDS};

    connection->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!connection->stream)
        close(fd);
    connection->deadline = evtimer_new(base, on_deadline, connection);
    if (!connection->stream || !connection->deadline)
        return false;
    evtimer_add(connection->deadline, &limit);
    bufferevent_setcb(connection->stream, on_readable, NULL, on_end, connection);
    return bufferevent_enable(connection->stream, EV_READ | EV_WRITE) == 0;
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int size, void *context)
{
    struct http_server *server = context;
    bool is_remote = !is_of_this_machine(address);

    server->is_short = false;
    struct http_connection *connection =
        make_room(server, is_remote) ? calloc(1, sizeof(*connection)) : NULL;

    if (!connection) {
        close(fd);
        return;
    }
    connection->server = server;
    connection->is_remote = is_remote;
    connection->request.context = server->context;
    list_append(&server->connections, &connection->link);
    if (!open_connection(connection, evconnlistener_get_base(listener), fd))
        free_connection(connection);
}

/* ---- listening ---- */

/* Without descriptors the connections wait in the kernel's queue until some are free again. */
static void on_shortage(struct evconnlistener *listener, void *context)
{
    const struct timeval pause = {.tv_usec = PAUSE_US};
    struct http_server *server = context;

    if (!server->is_short)
        journal("Cannot accept connections for metrics: %s", strerror(errno));
    server->is_short = true;
    evconnlistener_disable(listener);
    evtimer_add(server->pause, &pause);
}

static void on_pause_end(evutil_socket_t fd, short what, void *context)
{
    struct http_server *server = context;

    evconnlistener_enable(server->listener);
}

static int parse_address(const char *text, struct sockaddr_storage *ret_address, int *ret_size)
{
    char whole[160];
    bool has_host = strchr(text, ':') && *text != ':';
    uint64_t port;

    if (has_host)
        text_copy(whole, sizeof(whole), text);
    else
        text_format(whole, sizeof(whole), "127.0.0.1:%s", *text == ':' ? text + 1 : text);
    *ret_size = sizeof(*ret_address);
    const char *last = strrchr(whole, ':');
    if (!last || text_to_u64(last + 1, &port) || port > 65535)
        return -EINVAL;
    return evutil_parse_sockaddr_port(whole, (struct sockaddr *)ret_address, ret_size) ? -EINVAL
                                                                                       : 0;
}

static int parse_path(struct http_server *server, const char *text,
                      struct sockaddr_storage *ret_address, int *ret_size)
{
    struct sockaddr_un *address = (struct sockaddr_un *)ret_address;

    address->sun_family = AF_UNIX;
    if (!text_copy(address->sun_path, sizeof(address->sun_path), text))
        return -EINVAL;
    struct stat status;
    if (!lstat(text, &status) && S_ISSOCK(status.st_mode))
        unlink(text);
    text_copy(server->path, sizeof(server->path), text);
    *ret_size = sizeof(*address);
    return 0;
}

#define LISTENER_FLAGS (LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE)

/* The socket of the program before (reload.h). */
static int inherit_socket(struct http_server *server, struct event_base *base, const char *text,
                          int fd)
{
    if (*text == '/')
        text_copy(server->path, sizeof(server->path), text);
    server->listener = evconnlistener_new(base, on_connection, server, LISTENER_FLAGS, 0, fd);
    if (server->listener)
        return 0;
    close(fd);
    return -ENOMEM;
}

static int listen_at(struct http_server *server, struct event_base *base, const char *text)
{
    struct sockaddr_storage address = {0};
    int inherited = inherited_take(INHERITED_METRICS, text);

    if (inherited >= 0)
        return inherit_socket(server, base, text, inherited);
    int size, error = *text == '/' ? parse_path(server, text, &address, &size)
                                   : parse_address(text, &address, &size);

    if (error)
        return error;
    mode_t before = umask(0177);
    errno = 0;
    server->listener = evconnlistener_new_bind(base, on_connection, server, LISTENER_FLAGS, 16,
                                               (struct sockaddr *)&address, size);
    error = server->listener ? 0 : errno ? -errno : -EIO;
    umask(before);
    return error;
}

int http_server_socket(const struct http_server *server)
{
    return evconnlistener_get_fd(server->listener);
}

void http_server_listen(struct http_server *server, bool on)
{
    evtimer_del(server->pause);
    if (on)
        evconnlistener_enable(server->listener);
    else
        evconnlistener_disable(server->listener);
}

bool http_server_is_busy(const struct http_server *server)
{
    return !list_empty(&server->connections);
}

static void free_server(struct http_server *server)
{
    if (server->pause)
        event_free(server->pause);
    free(server);
}

int http_server_start(struct event_base *base, const char *address, http_handler *handle,
                      void *context, struct http_server **ret_server)
{
    struct http_server *server = calloc(1, sizeof(*server));

    if (!server)
        return -ENOMEM;
    list_init(&server->connections);
    server->handle = handle;
    server->context = context;
    server->pause = evtimer_new(base, on_pause_end, server);
    int error = server->pause ? listen_at(server, base, address) : -ENOMEM;
    if (error) {
        free_server(server);
        return error;
    }
    evconnlistener_set_error_cb(server->listener, on_shortage);
    *ret_server = server;
    return 0;
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    evconnlistener_free(server->listener);
    if (*server->path)
        unlink(server->path);
    list_for_each_safe (struct http_connection, connection, &server->connections, link) {
        list_remove(&connection->link);
        connection->server = NULL;
        end_connection(connection);
    }
    free_server(server);
}
