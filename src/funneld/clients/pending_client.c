/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_client.h. */
#include "pending_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept_reserve.h"
#include "accept_shortage.h"
#include "console.h"
#include "fd.h"
#include "funnel_errors.h"
#include "inherited.h"
#include "journal.h"
#include "pending_client_state.h"
#include "pending_program.h"
#include "service.h"
#include "sock.h"
#include "user_owner.h"

#define HELLO_TIMEOUT_S 10
#define ACCEPTS_PER_TURN 64

void pending_client_free(struct pending_client *client)
{
    client->daemon->waiting_clients -= client->waiting;
    list_remove(&client->link);
    connection_close(&client->connection);
    if (client->deadline)
        event_free(client->deadline);
    free(client->groups);
    free(client);
}

/* ---- refusal ---- */

void pending_client_refuse(struct pending_client *client, int status, const char *format, ...)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC, .status = status};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(welcome.text, sizeof(welcome.text), format, arguments);
    va_end(arguments);
    journal_with(LOG_EVENT(client->identity.pid, status),
                 "Client %d of user %u refused with status %d: %s", client->identity.pid,
                 client->identity.uid, status, welcome.text);
    connection_send(&client->connection, &welcome, sizeof(welcome), -1);
    pending_client_free(client);
}

void pending_client_set_deadline(struct pending_client *client, int seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    evtimer_add(client->deadline, &timeout);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct pending_client *client = context;
    uid_t before = journal_account(client->identity.owner);

    if (client->delayed)
        pending_program_admit(client);
    else if (client->waiting)
        pending_client_refuse(
            client, FUNNEL_ERROR_MPS_SERVER_NOT_READY,
            "The server %s is ending and still has clients; try again when they are done",
            client->routes.first.name);
    else
        pending_client_free(client);
    journal_account(before);
}

/* ---- front ends ---- */

static void admit_front_end(struct pending_client *client)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC};
    struct daemon *daemon = client->daemon;
    uid_t uid = client->identity.uid;

    if (daemon->uid != 0 && uid != 0 && uid != daemon->uid) {
        pending_client_refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
                              "The daemon at %.200s takes commands from user %u and root only",
                              daemon->paths.pipe, (unsigned)daemon->uid);
        return;
    }
    if (client->hello.kind == HELLO_AHEAD)
        pending_program_expect(client);
    if (!connection_send(&client->connection, &welcome, sizeof(welcome), -1))
        console_create(daemon, connection_release(&client->connection), client->identity.pid, uid);
    pending_client_free(client);
}

/* ---- hello ---- */

/* Connections of a user to the daemon, not counting those that a server has got. Beyond the quota
 * they are refused with a message, and beyond twice the quota without one. */
static bool has_more_connections_than(const struct daemon *daemon, uid_t owner, uint64_t limit)
{
    unsigned count = console_count(daemon, owner);

    list_for_each (struct pending_client, client, &daemon->pending_clients, link)
        count += client->identity.owner == owner;
    return owner != daemon->uid && count > limit;
}

static bool is_valid_hello(const struct hello *hello, size_t size)
{
    return size == sizeof(*hello) && hello->magic == HELLO_MAGIC &&
           hello->version == HELLO_VERSION && hello->kind >= HELLO_CLIENT &&
           hello->kind <= HELLO_AHEAD;
}

static void take_hello(struct pending_client *client, const struct hello *hello)
{
    client->hello = *hello;
    client->hello.group[sizeof(client->hello.group) - 1] = '\0';
    client->hello.sm_partition[sizeof(client->hello.sm_partition) - 1] = '\0';
    peer_program_look(client->connection.fd, hello, &client->identity, &client->program);
    if (client->hello.kind == HELLO_CLIENT)
        pending_program_greet(client);
    else
        admit_front_end(client);
}

static void dispatch_hello(struct pending_client *client, const void *data, size_t size)
{
    uint64_t most = client->daemon->quotas.value[QUOTA_CONNECTIONS];

    if (client->waiting || client->delayed) {
        journal_with(LOG_EVENT(client->identity.pid, 0),
                     "Client %d has sent a second message before it was welcomed; closing its "
                     "connection",
                     client->identity.pid);
        pending_client_free(client);
    } else if (!is_valid_hello(data, size)) {
        pending_client_refuse(
            client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
            "This is funneld %s, and it does not understand the client's hello; use a client "
            "library and a daemon of the same release",
            FUNNEL_VERSION);
    } else if (has_more_connections_than(client->daemon, client->identity.owner, most)) {
        pending_client_refuse(client, FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED,
                              "User %u has more than %llu connections waiting at the daemon",
                              client->identity.owner, (unsigned long long)most);
    } else {
        take_hello(client, data);
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    struct pending_client *client = owner;
    uid_t before = journal_account(client->identity.owner);

    dispatch_hello(client, data, size);
    journal_account(before);
}

static void on_closed(void *owner)
{
    pending_client_free(owner);
}

static const struct connection_handlers pending_client_handlers = {on_message, on_closed};

/* ---- accepting ---- */

/* Takes `fd`. NULL when there is none any more. */
static struct pending_client *add_connection(struct daemon *daemon, int fd,
                                             struct mps_namespace *space)
{
    struct pending_client *client = calloc(1, sizeof(*client));
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;

    if (!client || sock_peer(fd, &pid, &uid, &gid)) {
        fd_close(&fd);
        free(client);
        return NULL;
    }
    client->daemon = daemon;
    client->space = space;
    client->identity.pid = pid;
    client->identity.uid = uid;
    client->identity.gid = gid;
    client->identity.owner = user_owner(uid);
    client->deadline = evtimer_new(daemon->base, on_deadline, client);
    list_append(&daemon->pending_clients, &client->link);
    if (connection_open(&client->connection, daemon->base, fd, &pending_client_handlers, client) ||
        !client->deadline ||
        has_more_connections_than(daemon, client->identity.owner,
                                  2 * daemon->quotas.value[QUOTA_CONNECTIONS])) {
        pending_client_free(client);
        return NULL;
    }
    pending_client_set_deadline(client, HELLO_TIMEOUT_S);
    return client;
}

void pending_client_end_pause(evutil_socket_t fd, short what, void *daemon)
{
    services_listen(daemon, true);
}

void pending_client_accept(struct daemon *daemon, int listen_fd, struct mps_namespace *space)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = -1;
        int error = sock_accept(listen_fd, &fd);

        if (accept_is_short(error) && accept_shortage_refuse(daemon, listen_fd, error))
            continue;
        if (!accept_is_short(error))
            accept_shortage_end(daemon);
        if (error)
            return;
        add_connection(daemon, fd, space);
    }
}

/* ---- over a reload ---- */

int pending_clients_leave(const struct daemon *daemon, struct list *left)
{
    int error = 0;

    list_for_each (struct pending_client, client, &daemon->pending_clients, link) {
        bool has_said_hello = client->waiting || client->delayed;

        if (!error)
            error = inherited_add(left, INHERITED_CLIENT, client->connection.fd,
                                  client->space ? client->space->directory : "", &client->hello,
                                  has_said_hello ? sizeof(client->hello) : 0);
    }
    return error;
}

void pending_client_inherit(struct daemon *daemon, int fd, struct mps_namespace *space,
                            const void *hello, size_t size)
{
    struct pending_client *client = add_connection(daemon, fd, space);

    if (client && size)
        dispatch_hello(client, hello, size);
}

/* ---- namespaces ---- */

void pending_client_close_namespace(struct daemon *daemon, const struct mps_namespace *space)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link) {
        if (client->space != space)
            continue;
        if (client->waiting)
            pending_client_refuse(client, FUNNEL_ERROR_MPS_CONNECTION_FAILED,
                                  "Its server has been deleted");
        else
            pending_client_free(client);
    }
}

void pending_client_close_all(struct daemon *daemon)
{
    list_for_each_safe (struct pending_client, client, &daemon->pending_clients, link)
        pending_client_free(client);
}
