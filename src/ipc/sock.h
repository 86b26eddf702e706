/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets of whole messages (SOCK_SEQPACKET) that carry file descriptors.
 *
 * Everything is close-on-exec. Nothing received is trusted. A message that was cut, in its data or
 * in its descriptors, is an error, and its descriptors are closed. Descriptors that a function
 * returns are the caller's to close. The functions hold no state: any thread may call them, and
 * messages of threads that send on one socket do not mix. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SOCK_FDS_MAX 16u          /* descriptors in one message */
#define SOCK_SEND_TIMEOUT_MS 2000 /* how long sock_send() waits for a peer that does not read */

/* Listens at `path` with file mode `mode`. A socket file left there is replaced.
 * 0; -ENAMETOOLONG when the path does not fit a socket address; -errno. */
int sock_listen(const char *path, mode_t mode, int *ret_fd);

/* The next caller of a listening socket: 0 or -errno. */
int sock_accept(int listen_fd, int *ret_fd);

/* Connects to a listener: 0; -ENOENT or -ECONNREFUSED when no process listens; -ENAMETOOLONG;
 * -errno. */
int sock_connect(const char *path, int *ret_fd);

/* Two connected ends. */
int sock_pair(int ret_fds[2]);

/* Sends one message of 1 or more bytes with `fd_count` descriptors, which stay open here. Returns
 * 0, or -errno. -EPIPE or -ECONNRESET: the peer is gone, without a signal. -ETIMEDOUT: it did not
 * read for SOCK_SEND_TIMEOUT_MS. */
int sock_send(int fd, const void *data, size_t size, const int *fds, size_t fd_count);

/* Receives one message and returns its bytes; 0 = the peer closed (an empty message counts as
 * that). The parameter timeout_ms: -1 = no limit; 0 = do not wait (-EAGAIN when there is none).
 * Else -ETIMEDOUT after that time. -EMSGSIZE = longer than `capacity`, -EPROTO = more descriptors
 * than `fd_capacity`, or than this process may have now. Either way the message is gone. The first
 * *ret_fd_count of ret_fds are the caller's to close; it is 0 on every error. With ret_fds NULL no
 * descriptor is welcome. */
ssize_t sock_recv(int fd, void *data, size_t capacity, int *ret_fds, size_t fd_capacity,
                  size_t *ret_fd_count, int timeout_ms);

/* For a socket whose peers may hand their end on. From now on sock_recv_from() tells, by the
 * kernel's word, which process has sent a message. 0 or -errno. */
int sock_ask_sender(int fd);

/* sock_recv() that does not wait, with one descriptor at most, or without any where `ret_fd` is
 * NULL; -1 = none came. The sender is 0 where the socket does not ask, and where the process is in
 * a PID namespace that this one cannot see. */
ssize_t sock_recv_from(int fd, void *data, size_t capacity, int *ret_fd, pid_t *ret_sender);

/* The process at the other end, as the kernel saw it when the connection was made: 0 or -errno. */
int sock_peer(int fd, pid_t *ret_pid, uid_t *ret_uid, gid_t *ret_gid);

/* A descriptor of the process that made the connection (pidfd_open()), which the caller closes: 0;
 * -ESRCH when it has ended; -errno. Before Linux 6.5 it is the process that has the number now. */
int sock_peer_process(int fd, int *ret_process);

/* Whether the peer has closed, without waiting; true also for a broken descriptor. */
bool sock_hung_up(int fd);
