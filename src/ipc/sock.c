/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets of whole messages. The one idea: a received message is either entirely good, or an
 * error that leaves no descriptor behind. */
#include "sock.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"

/* Capacity for one control message of descriptors, aligned as the kernel wants it. Another one
 * before it names the sender, where the socket asks for that. */
#define CONTROL_FDS CMSG_SPACE(SOCK_FDS_MAX * sizeof(int))
#define CONTROL_SENDER CMSG_SPACE(sizeof(struct ucred))

union control {
    struct cmsghdr header;
    char bytes[CONTROL_FDS + CONTROL_SENDER];
};

/* More than fit: where no sender comes, descriptors have its place, too. */
#define FDS_MAX (sizeof(union control) / sizeof(int))

static int make_address(const char *path, struct sockaddr_un *ret_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    *ret_address = address;
    return 0;
}

static int make_socket(int *ret_fd)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* Removes a socket file of an earlier run, and nothing else. */
static void remove_stale_socket(const char *path)
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);
}

int sock_listen(const char *path, mode_t mode, int *ret_fd)
{
    struct sockaddr_un address;
    _cleanup_fd_ int fd = -1;
    int rc = make_address(path, &address);
    if (rc < 0)
        return rc;
    rc = make_socket(&fd);
    if (rc < 0)
        return rc;
    remove_stale_socket(path);
    /* The file is born with the mode of the unbound socket less the umask: never wider than asked.
     */
    if (fchmod(fd, mode) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (chmod(path, mode) < 0 || listen(fd, SOMAXCONN) < 0) {
        rc = -errno;
        unlink(path);
        return rc;
    }
    *ret_fd = fd_steal(&fd);
    return 0;
}

int sock_accept(int listen_fd, int *ret_fd)
{
    int fd;
    do
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int sock_connect(const char *path, int *ret_fd)
{
    struct sockaddr_un address;
    _cleanup_fd_ int fd = -1;
    int rc = make_address(path, &address);
    if (rc < 0)
        return rc;
    rc = make_socket(&fd);
    if (rc < 0)
        return rc;
    do
        rc = connect(fd, (struct sockaddr *)&address, sizeof(address));
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return -errno;
    *ret_fd = fd_steal(&fd);
    return 0;
}

int sock_pair(int ret_fds[2])
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    return 0;
}

/* Waits for `events` until `deadline` (0 = no limit): 0, -ETIMEDOUT or -errno. */
static int wait_for(int fd, short events, uint64_t deadline)
{
    struct pollfd poller = {.fd = fd, .events = events};
    for (;;) {
        int left = -1;
        if (deadline) {
            uint64_t now = clock_ns();
            if (now >= deadline)
                return -ETIMEDOUT;
            left = (int)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
        }
        int ready = poll(&poller, 1, left);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -errno;
    }
}

static uint64_t deadline_in(int timeout_ms)
{
    return timeout_ms < 0 ? 0 : clock_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

static void put_fds(struct msghdr *message, union control *control, const int *fds, size_t count)
{
    memset(control, 0, sizeof(*control));
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
}

int sock_send(int fd, const void *data, size_t size, const int *fds, size_t fd_count)
{
    union control control;
    struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (size == 0 || fd_count > SOCK_FDS_MAX)
        return -EINVAL;
    if (fd_count > 0)
        put_fds(&message, &control, fds, fd_count);

    uint64_t deadline = 0;
    while (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        deadline = deadline ? deadline : deadline_in(SOCK_SEND_TIMEOUT_MS);
        int rc = wait_for(fd, POLLOUT, deadline);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* All descriptors of a received message; there are fewer than FDS_MAX, for want of capacity. */
static size_t take_fds(struct msghdr *message, int *fds)
{
    size_t count = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (here > FDS_MAX - count)
            here = FDS_MAX - count;
        memcpy(fds + count, CMSG_DATA(h), here * sizeof(int));
        count += here;
    }
    return count;
}

static pid_t take_sender(struct msghdr *message)
{
    struct ucred sender = {0};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS)
            memcpy(&sender, CMSG_DATA(h), sizeof(sender));
    return sender.pid;
}

static void close_fds(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fd_close(&fds[i]);
}

/* Checks the message: 0, -EMSGSIZE or -EPROTO. */
static int judge(const struct msghdr *message, size_t fd_count, size_t fd_capacity)
{
    if (message->msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    if (message->msg_flags & MSG_CTRUNC || fd_count > fd_capacity)
        return -EPROTO;
    return 0;
}

/* A peer may end without having read all messages. Then the socket reports that once, as an error,
 * in front of the messages that the peer has sent before. */
static ssize_t receive_behind_reset(int fd, struct msghdr *message)
{
    const struct msghdr untouched = *message;
    ssize_t got = recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got >= 0 || errno != ECONNRESET)
        return got;
    *message = untouched;
    return recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

/* One recvmsg() that does not wait. `ret_sender` is not NULL for sockets that ask for it. */
static ssize_t receive_message(int fd, void *data, size_t capacity, int *ret_fds,
                               size_t fd_capacity, size_t *ret_fd_count, pid_t *ret_sender)
{
    union control control;
    int fds[FDS_MAX];
    struct iovec part = {.iov_base = data, .iov_len = capacity};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CONTROL_FDS + (ret_sender ? CONTROL_SENDER : 0),
    };
    ssize_t got = receive_behind_reset(fd, &message);
    if (got < 0)
        return -errno;

    size_t fd_count = take_fds(&message, fds);
    int fault = judge(&message, fd_count, fd_capacity);
    if (fault < 0 || got == 0) {
        close_fds(fds, fd_count);
        return fault;
    }
    memcpy(ret_fds, fds, fd_count * sizeof(int));
    *ret_fd_count = fd_count;
    if (ret_sender)
        *ret_sender = take_sender(&message);
    return got;
}

ssize_t sock_recv(int fd, void *data, size_t capacity, int *ret_fds, size_t fd_capacity,
                  size_t *ret_fd_count, int timeout_ms)
{
    size_t fd_count = 0;
    int no_fds[1];
    uint64_t deadline = deadline_in(timeout_ms);
    ssize_t got;
    while ((got = receive_message(fd, data, capacity, ret_fds ? ret_fds : no_fds,
                                  ret_fds ? fd_capacity : 0, &fd_count, NULL)) < 0) {
        if (got == -EINTR)
            continue;
        if (got != -EAGAIN || timeout_ms == 0)
            break;
        int rc = wait_for(fd, POLLIN, deadline);
        if (rc < 0) {
            got = rc;
            break;
        }
    }
    if (ret_fd_count)
        *ret_fd_count = fd_count;
    return got;
}

int sock_ask_sender(int fd)
{
    int on = 1;
    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ? -errno : 0;
}

ssize_t sock_recv_from(int fd, void *data, size_t capacity, int *ret_fd, pid_t *ret_sender)
{
    size_t fd_count = 0;
    int fds[1] = {-1};
    ssize_t got = receive_message(fd, data, capacity, fds, ret_fd != NULL, &fd_count, ret_sender);
    if (ret_fd)
        *ret_fd = fd_count ? fds[0] : -1;
    return got;
}

int sock_peer(int fd, pid_t *ret_pid, uid_t *ret_uid, gid_t *ret_gid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    *ret_pid = peer.pid;
    *ret_uid = peer.uid;
    *ret_gid = peer.gid;
    return 0;
}

#ifndef SO_PEERPIDFD /* since Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

int sock_peer_process(int fd, int *ret_process)
{
    socklen_t size = sizeof(*ret_process);
    pid_t pid = 0;
    uid_t uid;
    gid_t gid;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, ret_process, &size) == 0)
        return 0;
    if (errno != ENOPROTOOPT)
        return -errno;
    int error = sock_peer(fd, &pid, &uid, &gid);
    if (error)
        return error;
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0)
        return -errno;
    *ret_process = process;
    return 0;
}

bool sock_hung_up(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLRDHUP};
    if (fd < 0)
        return true; /* which poll() would pass over */
    return poll(&poller, 1, 0) > 0 &&
           (poller.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}
