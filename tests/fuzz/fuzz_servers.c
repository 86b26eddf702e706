/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a server says to the daemon, also while that takes it over. They are messages,
 * the lines of its log, and texts of clients in a line of usage.jsonl. Whatever they are, no client
 * becomes another one, no user is charged for what others' servers say, and a line stays one line.
 */
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "client_record.h"
#include "fault_drain.h"
#include "fuzz.h"
#include "pending_request.h"
#include "server_handlers.h"
#include "server_process.h"
#include "text.h"
#include "usage_line.h"
#include "usage_totals.h"

#define CLIENTS 3u
#define OWNER 4711u

/* The process of the server: there is none with this number. */
#define NO_PROCESS INT32_MAX

static struct daemon daemon_state;
static struct server_process server;

static void on_connection(struct daemon *daemon, int listen_fd, struct mps_namespace *space)
{
}

static void on_namespace(struct daemon *daemon, const struct mps_namespace *space)
{
}

static void on_server(struct server_process *process)
{
}

static void on_failure(struct daemon *daemon, const char *name, int status, const char *text)
{
}

static void on_gone(struct daemon *daemon, const char *name)
{
}

static void on_reaped(struct daemon *daemon)
{
}

static const struct daemon_events events = {on_connection, on_namespace, on_server,
                                            on_failure,    on_gone,      on_reaped};

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
}

static void begin_daemon(void)
{
    if (daemon_state.base)
        return;
    daemon_init(&daemon_state);
    daemon_state.base = event_base_new();
    daemon_state.events = &events;
    strcpy(daemon_state.paths.log, "/nonexistent");
    if (!daemon_state.base)
        abort();
}

/* One whose end was ordered, so that no other server is started in its place. */
static void begin_server(enum server_state state, bool resuming)
{
    memset(&server, 0, sizeof(server));
    memset(usage_totals(), 0, sizeof(struct usage_totals));
    server.daemon = &daemon_state;
    server.pid = NO_PROCESS;
    server.uid = OWNER;
    server.state = state;
    server.dismissed = true;
    server.connection.fd = server.log.fd = server.process_fd = -1;
    server.resuming = resuming;
    strcpy(server.name, "uid_4711");
    list_init(&server.requests);
    list_init(&server.records);
    list_append(&daemon_state.servers, &server.link);
    server.deadline = evtimer_new(daemon_state.base, on_deadline, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        const struct server_identity identity = {.pid = NO_PROCESS, .uid = OWNER};
        const struct client_program program = {0};
        if (!client_record_add(&server, &identity, &program))
            abort();
    }
}

static void end_server(void)
{
    pending_requests_end(&server);
    client_records_close(&server);
    fault_drain_close(&daemon_state);
    heartbeat_end(&server);
    event_free(server.deadline);
    list_remove(&server.link);
}

static void check_who_is_charged(void)
{
    const struct usage_totals *totals = usage_totals();

    for (unsigned i = 0; i < totals->count; i++)
        if (totals->total[i].uid != OWNER || totals->total[i].clients > CLIENTS)
            abort();
}

/* ---- messages ---- */

/* The next message of the input: a kind, how much of its body comes, and that. */
static size_t say(const uint8_t *input, size_t left)
{
    _Alignas(16) union server_any message;
    unsigned kind = left ? SERVER_READY + input[0] % 16 : 0;
    size_t body = left > 2 ? left - 2 : 0, size = server_message_size(kind);

    if (left < 2)
        return left;
    body = body > input[1] ? input[1] : body;
    if (!size)
        return 2;
    server_message_init(&message, kind, 1);
    if (body > size - sizeof(message.header))
        body = size - sizeof(message.header);
    memcpy((char *)&message + sizeof(message.header), input + 2, body);
    server_connection_handlers.message(&server, &message, size);
    return 2 + body;
}

static void say_all(const uint8_t *input, size_t size)
{
    bool starts = size && input[0] % 4 == 0;

    begin_server(starts ? SERVER_INITIALIZING : SERVER_ACTIVE, starts && input[0] % 8 == 0);
    server_connection_handlers.message(&server, input, size);
    for (size_t used = 0; used < size;)
        used += say(input + used, size - used);
    end_server();
    check_who_is_charged();
}

/* ---- lines ---- */

static void check_lines(const uint8_t *input, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return;
    memcpy(text, input, size);
    text[size] = 'x';
    text_make_lines_printable(text, size);
    for (size_t i = 0; i < size; i++) {
        bool divides = text[i] == '\n' || text[i] == '\t'; /* lines, and texts from records */

        if (divides ? (uint8_t)text[i] != input[i]
                    : (unsigned char)text[i] < ' ' || text[i] == 0x7f)
            abort();
        if (input[i] == '\n' && text[i] != '\n')
            abort();
    }
    if (text[size] != 'x')
        abort();
    free(text);
}

/* Quotes that are not escaped come in pairs, and the only control character is the newline. */
static void check_json_line(const unsigned char *text, size_t size)
{
    bool quoted = false;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        i += quoted && text[i] == '\\';
        if (text[i] < ' ' && (i != size - 1 || text[i] != '\n'))
            abort();
    }
    if (!size || quoted)
        abort();
}

static void check_journal(const uint8_t *input, size_t size)
{
    struct server_identity who = {0};
    struct server_client_gone gone = {0};
    struct evbuffer *out = evbuffer_new();
    const struct usage_line line = {server.name, &server.ready, &who, &gone, 0, 1, 0};

    if (!out)
        return;
    memcpy(&who, input, size < sizeof(who) ? size : sizeof(who));
    who.uid = OWNER; /* each number is looked up in the table of users */
    memcpy(&gone, input, size < sizeof(gone) ? size : sizeof(gone));
    usage_line_add(out, &line);
    check_json_line(evbuffer_pullup(out, -1), evbuffer_get_length(out));
    evbuffer_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    begin_daemon();
    say_all(input, left);
    check_lines(input, left);
    check_journal(input, left);
    return 0;
}
