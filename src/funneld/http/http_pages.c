/* SPDX-License-Identifier: Apache-2.0 */
/* See http_pages.h. */
#include "http_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "http_history.h"
#include "http_host.h"
#include "http_orders.h"
#include "http_page.h"
#include "http_parse.h"
#include "http_server.h"
#include "http_token.h"
#include "http_usage.h"
#include "journal.h"
#include "metrics_text.h"
#include "server_process.h"
#include "state_json.h"
#include "usage_history.h"

#define TYPE_JSON "application/json"
#define LOG_BYTES (64 << 10)

static struct http_server *server;

/* Answers with what `add` appends to a buffer. */
static void answer_buffer(struct http_request *request, const char *type, struct evbuffer *body)
{
    http_answer(request, body ? 200 : 503, body ? type : "text/plain", body);
    if (body)
        evbuffer_free(body);
}

/* ---- what has to be asked of the servers ---- */

static void on_metrics(struct status_query *query, void *context)
{
    struct http_request *request = context;
    const struct metrics_view view = {.is_openmetrics = request->takes_openmetrics,
                                      .shows_commands = request->is_operator};
    struct evbuffer *body = evbuffer_new();

    if (body)
        metrics_text_add(body, request->context, query, &view);
    answer_buffer(request, view.is_openmetrics ? METRICS_TYPE_OPENMETRICS : METRICS_TYPE_PROMETHEUS,
                  body);
}

static void on_state(struct status_query *query, void *context)
{
    struct http_request *request = context;
    struct evbuffer *body = evbuffer_new();

    if (body)
        state_json_add(body, request->context, query, request->is_operator);
    answer_buffer(request, TYPE_JSON, body);
}

static void answer_metrics(struct http_request *request)
{
    if (status_query_start(request->context, NULL, NULL, on_metrics, request))
        http_answer(request, 503, "text/plain", NULL);
}

static void answer_state(struct http_request *request)
{
    if (status_query_start(request->context, NULL, NULL, on_state, request))
        http_answer(request, 503, "text/plain", NULL);
}

/* ---- the rest ---- */

static const struct http_page_file *find_file(const char *path)
{
    for (size_t i = 0; i < http_page_file_count; i++)
        if (!strcmp(http_page_files[i].path, path))
            return &http_page_files[i];
    return NULL;
}

static void answer_file(struct http_request *request, const struct http_page_file *file)
{
    struct evbuffer *body = evbuffer_new();

    if (body)
        evbuffer_add_reference(body, file->bytes, file->size, NULL, NULL);
    answer_buffer(request, file->type, body);
}

/* range=300, 3600 or 86400, in seconds; since=MILLISECONDS since the epoch, for what is newer. */
static void answer_history(struct http_request *request)
{
    static const unsigned ranges[HISTORY_RANGES] = {300, 3600, 86400};
    uint64_t seconds = ranges[0], since = 0;
    unsigned range = 0;

    if ((http_query_has(request, "range") && http_query_number(request, "range", &seconds)) ||
        (http_query_has(request, "since") && http_query_number(request, "since", &since))) {
        http_answer(request, 400, "text/plain", NULL);
        return;
    }
    while (range < HISTORY_RANGES && ranges[range] != seconds)
        range++;
    if (range == HISTORY_RANGES) {
        http_answer(request, 400, "text/plain", NULL);
        return;
    }
    struct evbuffer *body = evbuffer_new();
    if (body)
        http_history_add(body, range, (double)since / 1e3);
    answer_buffer(request, TYPE_JSON, body);
}

/* 0 or -errno; -ENOENT where there is no such server. */
static int find_log(const struct http_request *request, char path[PATH_MAX])
{
    const struct daemon *daemon = request->context;
    uint64_t pid;

    if (!http_query_has(request, "server"))
        return path_join(daemon->paths.log, "control.log", path, PATH_MAX);
    if (http_query_number(request, "server", &pid) || pid > INT32_MAX)
        return -EINVAL;
    const struct server_process *process = server_process_by_pid(daemon, (pid_t)pid);
    return process ? journal_server_path(daemon->paths.log, process->name, path) : -ENOENT;
}

/* The end of control.log, or with server=PID of what that server logs. */
static void answer_log(struct http_request *request)
{
    char path[PATH_MAX], text[LOG_BYTES];
    int error = find_log(request, path);

    if (error) {
        http_answer(request, error == -ENOENT ? 404 : 400, "text/plain", NULL);
        return;
    }
    struct evbuffer *body = evbuffer_new();
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t got = pread(fd, text, sizeof(text), size > LOG_BYTES ? size - LOG_BYTES : 0);

    if (body && got > 0)
        evbuffer_add(body, text, (size_t)got);
    answer_buffer(request, "text/plain; charset=utf-8", body);
}

/* ---- routes ---- */

static const struct {
    const char *path;
    bool is_post, needs_operator;
    void (*answer)(struct http_request *request);
} routes[] = {
    {"/metrics", false, false, answer_metrics},
    {"/api/state", false, false, answer_state},
    {"/api/history", false, false, answer_history},
    {"/api/log", false, true, answer_log},
    {"/api/usage", false, true, http_usage_answer},
    {"/api/terminate", true, true, http_order_terminate},
    {"/api/limit", true, true, http_order_limit},
};

/* A page of another site, whose name was made to lead here, would read what is served. */
static void refuse_host(struct http_request *request)
{
    struct evbuffer *body = evbuffer_new();

    if (body)
        evbuffer_add_printf(body,
                            "This name is not one of the page's: use an address or the name of "
                            "the host, or start the daemon with FUNNEL_METRICS_HOSTS=NAME\n");
    http_answer(request, 421, "text/plain", body);
    if (body)
        evbuffer_free(body);
}

static void handle(struct http_request *request)
{
    if (!request->is_operator && !http_host_is_ours(request->host)) {
        refuse_host(request);
        return;
    }
    const struct http_page_file *file = find_file(request->path);
    if (file && !request->is_post) {
        answer_file(request, file);
        return;
    }
    for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
        if (strcmp(routes[i].path, request->path))
            continue;
        if (routes[i].is_post != request->is_post)
            http_answer(request, 405, "text/plain", NULL);
        else if (routes[i].needs_operator && !request->is_operator)
            http_answer(request, 401, "text/plain", NULL);
        else
            routes[i].answer(request);
        return;
    }
    http_answer(request, file ? 405 : 404, "text/plain", NULL);
}

int http_pages_start(struct daemon *daemon, const char *address)
{
    int error = http_server_start(daemon->base, address, handle, daemon, &server);

    if (!error)
        error = http_token_create(daemon->paths.pipe);
    if (!error)
        error = usage_history_start(daemon);
    if (!error)
        journal("Metrics and the status page are served at %s", address);
    return error;
}

int http_pages_socket(void)
{
    return server ? http_server_socket(server) : -1;
}

void http_pages_listen(bool on)
{
    if (server)
        http_server_listen(server, on);
}

bool http_pages_are_read(void)
{
    return server && http_server_is_busy(server);
}

void http_pages_stop(void)
{
    usage_history_stop();
    http_usage_stop();
    http_server_stop(server);
    server = NULL;
    http_token_remove();
}
