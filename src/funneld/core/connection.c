/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fd.h"
#include "journal.h"
#include "sock.h"

#define OUTBOX_MAX (8u << 20)
#define OUTBOX_FDS_MAX 1024u /* descriptors that wait for a peer that does not read */
#define DRAIN_MAX 4096       /* messages of a peer that ends */
#define MESSAGE_MAX 8192
#define MESSAGES_PER_TURN 64 /* then other connections have their turn */

struct queued_message {
    struct list link;
    int fd;
    size_t size;
    char data[];
};

static void queued_message_free(struct queued_message *queued_message)
{
    list_remove(&queued_message->link);
    fd_close(&queued_message->fd);
    free(queued_message);
}

/* One sendmsg that does not wait: 0 or -errno. */
static int send_now(int socket, const void *data, size_t size, int fd)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd >= 0) {
        struct cmsghdr *header;

        message.msg_control = control.space;
        message.msg_controllen = sizeof(control.space);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(int));
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The end of a connection is reported by the loop, never from inside connection_send, whose callers
 * still use their objects. */
static int break_later(struct connection *connection, int error)
{
    connection->broken = true;
    event_active(connection->readable, EV_READ, 1);
    return error;
}

static int queue(struct connection *connection, const void *data, size_t size, int *fd)
{
    struct queued_message *queued_message;

    if (connection->queued + size > OUTBOX_MAX ||
        (*fd >= 0 && connection->queued_fds >= OUTBOX_FDS_MAX))
        return -ENOBUFS;
    queued_message = malloc(sizeof(*queued_message) + size);
    if (!queued_message)
        return -ENOMEM;
    connection->queued_fds += *fd >= 0;
    queued_message->fd = fd_steal(fd);
    queued_message->size = size;
    memcpy(queued_message->data, data, size);
    list_append(&connection->outbox, &queued_message->link);
    connection->queued += size;
    event_add(connection->writable, NULL);
    return 0;
}

int connection_send(struct connection *connection, const void *data, size_t size, int fd)
{
    _cleanup_fd_ int owned = fd;
    int error = -EAGAIN;

    if (connection->fd < 0 || connection->broken)
        return -EPIPE;
    if (list_empty(&connection->outbox))
        error = send_now(connection->fd, data, size, owned);
    if (error == -EAGAIN || error == -ENOBUFS)
        error = queue(connection, data, size, &owned);
    return error ? break_later(connection, error) : 0;
}

static void on_writable(evutil_socket_t socket, short what, void *context)
{
    struct connection *connection = context;

    list_for_each_safe (struct queued_message, queued_message, &connection->outbox, link) {
        int error = send_now(connection->fd, queued_message->data, queued_message->size,
                             queued_message->fd);

        if (error == -EAGAIN || error == -ENOBUFS) {
            event_add(connection->writable, NULL);
            return;
        }
        if (error) {
            break_later(connection, error);
            return;
        }
        connection->queued -= queued_message->size;
        connection->queued_fds -= queued_message->fd >= 0;
        queued_message_free(queued_message);
    }
}

static bool is_expected(struct connection *connection, pid_t sender)
{
    if (!connection->sender || sender == connection->sender)
        return true;
    if (!connection->has_impostor)
        journal(
            "Process %d has sent a message in the name of process %d; such messages are ignored",
            (int)sender, (int)connection->sender);
    connection->has_impostor = true;
    return false;
}

/* Handles one message; false when there is none left, or the connection was closed. */
static bool handle_one(struct connection *connection, bool *gone)
{
    _Alignas(16) char data[MESSAGE_MAX];
    pid_t sender = 0;
    _cleanup_fd_ int file = -1;
    ssize_t got = connection->broken
                      ? -EPIPE
                      : sock_recv_from(connection->fd, data, sizeof(data),
                                       connection->takes_files ? &file : NULL, &sender);

    if (got == -EAGAIN || got == -EINTR)
        return false;
    if (got <= 0) {
        connection->broken = true;
        event_del(connection->readable);
        connection->handlers->closed(connection->owner);
        return false;
    }
    if (!is_expected(connection, sender))
        return true;
    connection->file = &file;
    connection->handlers->message(connection->owner, data, (size_t)got);
    if (!*gone)
        connection->file = NULL;
    return !*gone;
}

static void handle_messages(struct connection *connection, int limit)
{
    bool gone = false;

    connection->gone = &gone;
    while (limit-- && handle_one(connection, &gone))
        if (!event_pending(connection->readable, EV_READ, NULL) && limit)
            break;
    if (!gone)
        connection->gone = NULL;
}

static void on_readable(evutil_socket_t socket, short what, void *context)
{
    handle_messages(context, MESSAGES_PER_TURN);
}

void connection_drain(struct connection *connection)
{
    if (connection->fd >= 0 && !connection->broken && !connection->gone)
        handle_messages(connection, DRAIN_MAX);
}

void connection_listen(struct connection *connection, bool on)
{
    if (connection->fd < 0)
        return;
    if (on)
        event_add(connection->readable, NULL);
    else
        event_del(connection->readable);
}

int connection_open(struct connection *connection, struct event_base *base, int fd,
                    const struct connection_handlers *handlers, void *owner)
{
    memset(connection, 0, sizeof(*connection));
    list_init(&connection->outbox);
    connection->fd = fd;
    connection->handlers = handlers;
    connection->owner = owner;
    connection->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, connection);
    connection->writable = event_new(base, fd, EV_WRITE, on_writable, connection);
    if (!connection->readable || !connection->writable || event_add(connection->readable, NULL)) {
        connection_close(connection);
        return -ENOMEM;
    }
    return 0;
}

int connection_release(struct connection *connection)
{
    if (connection->gone)
        *connection->gone = true;
    connection->gone = NULL;
    list_for_each_safe (struct queued_message, queued_message, &connection->outbox, link)
        queued_message_free(queued_message);
    if (connection->readable)
        event_free(connection->readable);
    if (connection->writable)
        event_free(connection->writable);
    connection->readable = connection->writable = NULL;
    return fd_steal(&connection->fd);
}

void connection_close(struct connection *connection)
{
    int fd = -1;

    if (connection->fd < 0)
        return;
    fd = connection_release(connection);
    fd_close(&fd);
}
