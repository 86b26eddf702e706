/* SPDX-License-Identifier: Apache-2.0 */
/* See revocable.h. */
#include "revocable.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"
#include "sock.h"

/* The owner never reads what the peer would send by its inbox. Its connection in there would stay
 * open after its end, and the owner would not see that end. */
static int allow_one_way(int outbox)
{
    return shutdown(outbox, SHUT_RD) ? -errno : 0;
}

int revocable_init(struct revocable *revocable)
{
    int ends[2];
    int error = sock_pair(ends);

    if (error)
        return error;
    *revocable = (struct revocable){.inbox = ends[0], .outbox = ends[1]};
    error = allow_one_way(revocable->outbox);
    if (error)
        revocable_fini(revocable);
    return error;
}

void revocable_fini(struct revocable *revocable)
{
    fd_close(&revocable->inbox);
    fd_close(&revocable->outbox);
}

int revocable_fill(const struct revocable *revocable, int fd)
{
    return sock_send(revocable->outbox, "", 1, &fd, 1);
}

int revocable_keep_first(const struct revocable *revocable)
{
    _cleanup_fd_ int first = -1;
    int error = revocable_take(revocable->inbox, &first);

    while (revocable_is_filled(revocable->inbox))
        revocable_revoke(revocable);
    return error ? error : revocable_fill(revocable, first);
}

void revocable_revoke(const struct revocable *revocable)
{
    int fd = -1;

    if (!revocable_take(revocable->inbox, &fd))
        fd_close(&fd);
}

/* Without a place for descriptors none is made. */
bool revocable_is_filled(int inbox)
{
    char byte;

    return recv(inbox, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == sizeof(byte);
}

int revocable_take(int inbox, int *ret_fd)
{
    char byte;
    size_t count = 0;
    int fd = -1;
    ssize_t got = sock_recv(inbox, &byte, sizeof(byte), &fd, 1, &count, 0);

    if (got < 0 || !count)
        return -ENODATA;
    *ret_fd = fd;
    return 0;
}

int revocable_put_back(int inbox, int fd)
{
    struct revocable own = REVOCABLE_NONE;
    int error = revocable_init(&own);

    if (!error)
        error = revocable_fill(&own, fd);
    if (!error && dup3(own.inbox, inbox, O_CLOEXEC) < 0)
        error = -errno;
    revocable_fini(&own);
    return error;
}

int revocable_take_last(int inbox, int *ret_fd)
{
    int fd = -1, next;

    while (!revocable_take(inbox, &next)) {
        fd_close(&fd);
        fd = next;
    }
    if (fd < 0)
        return -ENODATA;
    *ret_fd = fd;
    return 0;
}
