/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */
#include "peer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fd.h"
#include "sock.h"

#define OUTBOX_MAX (8u << 20)
#define MESSAGE_MAX 8192
#define MESSAGES_A_TURN 64 /* then others have theirs */

struct parcel {
    struct list link;
    int fd;
    size_t size;
    char data[];
};

static void parcel_free(struct parcel *parcel)
{
    list_remove(&parcel->link);
    fd_close(&parcel->fd);
    free(parcel);
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

/* The end of a connection is reported by the loop, never from inside peer_send: its callers may
 * hold on to their objects. */
static int break_later(struct peer *peer, int error)
{
    peer->broken = true;
    event_active(peer->readable, EV_READ, 1);
    return error;
}

static int queue(struct peer *peer, const void *data, size_t size, int *fd)
{
    struct parcel *parcel;

    if (peer->queued + size > OUTBOX_MAX)
        return -ENOBUFS;
    parcel = malloc(sizeof(*parcel) + size);
    if (!parcel)
        return -ENOMEM;
    parcel->fd = fd_steal(fd);
    parcel->size = size;
    memcpy(parcel->data, data, size);
    list_append(&peer->outbox, &parcel->link);
    peer->queued += size;
    event_add(peer->writable, NULL);
    return 0;
}

int peer_send(struct peer *peer, const void *data, size_t size, int fd)
{
    _cleanup_fd_ int owned = fd;
    int error = -EAGAIN;

    if (peer->fd < 0 || peer->broken)
        return -EPIPE;
    if (list_empty(&peer->outbox))
        error = send_now(peer->fd, data, size, owned);
    if (error == -EAGAIN || error == -ENOBUFS)
        error = queue(peer, data, size, &owned);
    return error ? break_later(peer, error) : 0;
}

static void on_writable(evutil_socket_t socket, short what, void *context)
{
    struct peer *peer = context;

    list_for_each_safe(struct parcel, parcel, &peer->outbox, link)
    {
        int error = send_now(peer->fd, parcel->data, parcel->size, parcel->fd);

        if (error == -EAGAIN || error == -ENOBUFS) {
            event_add(peer->writable, NULL);
            return;
        }
        if (error) {
            break_later(peer, error);
            return;
        }
        peer->queued -= parcel->size;
        parcel_free(parcel);
    }
}

/* Handles one message; false when there is none left, or no peer. */
static bool handle_one(struct peer *peer, bool *gone)
{
    _Alignas(16) char data[MESSAGE_MAX];
    size_t fds = 0;
    ssize_t got = peer->broken ? -EPIPE : sock_recv(peer->fd, data, sizeof(data), NULL, 0, &fds, 0);

    if (got == -EAGAIN || got == -EINTR)
        return false;
    if (got <= 0) {
        peer->broken = true;
        event_del(peer->readable);
        peer->handlers->closed(peer->owner);
        return false;
    }
    peer->handlers->message(peer->owner, data, (size_t)got);
    return !*gone;
}

static void handle_messages(struct peer *peer, int limit)
{
    bool gone = false;

    peer->gone = &gone;
    while (limit-- && handle_one(peer, &gone))
        if (!event_pending(peer->readable, EV_READ, NULL) && limit)
            break;
    if (!gone)
        peer->gone = NULL;
}

static void on_readable(evutil_socket_t socket, short what, void *context)
{
    handle_messages(context, MESSAGES_A_TURN);
}

void peer_drain(struct peer *peer)
{
    if (peer->fd >= 0 && !peer->broken && !peer->gone)
        handle_messages(peer, INT_MAX);
}

void peer_listen(struct peer *peer, bool on)
{
    if (peer->fd < 0)
        return;
    if (on)
        event_add(peer->readable, NULL);
    else
        event_del(peer->readable);
}

int peer_open(struct peer *peer, struct event_base *base, int fd,
              const struct peer_handlers *handlers, void *owner)
{
    memset(peer, 0, sizeof(*peer));
    list_init(&peer->outbox);
    peer->fd = fd;
    peer->handlers = handlers;
    peer->owner = owner;
    peer->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, peer);
    peer->writable = event_new(base, fd, EV_WRITE, on_writable, peer);
    if (!peer->readable || !peer->writable || event_add(peer->readable, NULL)) {
        peer_close(peer);
        return -ENOMEM;
    }
    return 0;
}

int peer_release(struct peer *peer)
{
    if (peer->gone)
        *peer->gone = true;
    peer->gone = NULL;
    list_for_each_safe(struct parcel, parcel, &peer->outbox, link) parcel_free(parcel);
    if (peer->readable)
        event_free(peer->readable);
    if (peer->writable)
        event_free(peer->writable);
    peer->readable = peer->writable = NULL;
    return fd_steal(&peer->fd);
}

void peer_close(struct peer *peer)
{
    int fd = -1;

    if (peer->fd < 0)
        return;
    fd = peer_release(peer);
    fd_close(&fd);
}
