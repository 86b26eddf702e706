/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: whole messages with their descriptors, or an error that leaves no descriptor open. */
#include "sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char folder[] = "/tmp/funnel-sock-XXXXXX";
static char path[sizeof(folder) + 16];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/socket", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder);
}

static int open_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void make_pair(int ends[2])
{
    assert_int_equal(sock_pair(ends), 0);
}

static void close_pair(int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Sends `count` descriptors by hand, more than sock_send() would. */
static void send_many(int fd, size_t size, size_t count)
{
    char control[CMSG_SPACE(64 * sizeof(int))] = {0}, data[64] = {0};
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
    assert_int_equal(sendmsg(fd, &message, 0), size);
}

static void test_listen_connect_accept(void **state)
{
    int listener, client, server;
    char data[8] = "";
    struct stat status;
    assert_int_equal(sock_connect(path, &client), -ENOENT);
    assert_int_equal(sock_listen(path, 0600, &listener), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(sock_connect(path, &client), 0);
    assert_int_equal(sock_accept(listener, &server), 0);
    assert_int_equal(sock_send(client, "hello", 6, NULL, 0), 0);
    assert_int_equal(sock_recv(server, data, sizeof(data), NULL, 0, NULL, -1), 6);
    assert_string_equal(data, "hello");
    close(client);
    close(server);
    close(listener);
    assert_int_equal(sock_connect(path, &client), -ECONNREFUSED);
}

static void test_a_stale_socket_is_replaced_but_no_other_file(void **state)
{
    int listener;
    assert_int_equal(sock_listen(path, 0666, &listener), 0);
    close(listener);
    assert_int_equal(sock_listen(path, 0600, &listener), 0);
    close(listener);
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(sock_listen(path, 0600, &listener), -EADDRINUSE);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

static void test_a_path_that_is_too_long(void **state)
{
    char long_path[200];
    int fd = -7;
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(sock_listen(long_path, 0600, &fd), -ENAMETOOLONG);
    assert_int_equal(sock_connect(long_path, &fd), -ENAMETOOLONG);
    assert_int_equal(fd, -7);
    long_path[108] = '\0'; /* sun_path holds 108, but then there is no room for the NUL */
    assert_int_equal(sock_connect(long_path, &fd), -ENAMETOOLONG);
    long_path[107] = '\0';
    assert_int_equal(sock_connect(long_path, &fd), -ENOENT);
}

static void test_descriptors_travel(void **state)
{
    int ends[2], pipe_ends[2], received[4];
    size_t count = 9;
    char data[4], letter = 0;
    make_pair(ends);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(sock_send(ends[0], "two", 4, pipe_ends, 2), 0);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), received, 4, &count, -1), 4);
    assert_int_equal(count, 2);
    assert_int_not_equal(fcntl(received[0], F_GETFD) & FD_CLOEXEC, 0);
    assert_int_equal(write(received[1], "x", 1), 1);
    assert_int_equal(read(pipe_ends[0], &letter, 1), 1);
    assert_int_equal(letter, 'x');
    close_pair(received);
    close_pair(pipe_ends);
    close_pair(ends);
}

static void test_no_descriptors_in_the_next_message(void **state)
{
    int ends[2], received[1];
    size_t count = 9;
    char data[4];
    make_pair(ends);
    assert_int_equal(sock_send(ends[0], "a", 1, NULL, 0), 0);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), received, 1, &count, -1), 1);
    assert_int_equal(count, 0);
    close_pair(ends);
}

/* Sends 16 bytes with `sent` descriptors to a receiver of `capacity` bytes and `fd_capacity`. */
static void assert_refused(size_t sent, size_t capacity, size_t fd_capacity, int error)
{
    int ends[2], received[SOCK_FDS_MAX];
    size_t count = 9;
    char data[64];
    make_pair(ends);
    int before = open_fds();
    send_many(ends[0], 16, sent);
    assert_int_equal(sock_recv(ends[1], data, capacity, received, fd_capacity, &count, -1), error);
    assert_int_equal(count, 0);
    assert_int_equal(open_fds(), before);
    assert_int_equal(sock_send(ends[0], "next", 4, NULL, 0), 0);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, -1), 4);
    close_pair(ends);
}

static void test_forged_descriptor_counts_leak_nothing(void **state)
{
    assert_refused(2, 64, 1, -EPROTO);
    assert_refused(1, 64, 0, -EPROTO);
    assert_refused(SOCK_FDS_MAX, 64, SOCK_FDS_MAX - 1, -EPROTO);
    assert_refused(SOCK_FDS_MAX + 1, 64, SOCK_FDS_MAX, -EPROTO);
    assert_refused(60, 64, SOCK_FDS_MAX, -EPROTO);
}

static void test_truncated_data_leaks_nothing(void **state)
{
    for (size_t capacity = 1; capacity < 16; capacity++)
        assert_refused(3, capacity, SOCK_FDS_MAX, -EMSGSIZE);
    assert_refused(60, 8, SOCK_FDS_MAX, -EMSGSIZE);
}

static void test_descriptors_where_none_is_welcome(void **state)
{
    int ends[2];
    char data[64];
    make_pair(ends);
    int before = open_fds();
    send_many(ends[0], 16, 1);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 5, NULL, -1), -EPROTO);
    assert_int_equal(open_fds(), before);
    close_pair(ends);
}

static void test_an_empty_message_counts_as_the_end(void **state)
{
    int ends[2], received[4];
    size_t count = 9;
    char data[4];
    make_pair(ends);
    int before = open_fds();
    send_many(ends[0], 0, 2);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), received, 4, &count, -1), 0);
    assert_int_equal(count, 0);
    assert_int_equal(open_fds(), before);
    close_pair(ends);
}

static void test_waiting(void **state)
{
    int ends[2];
    char data[4];
    make_pair(ends);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, 0), -EAGAIN);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, 5), -ETIMEDOUT);
    close_pair(ends);
}

static void *send_later(void *argument)
{
    return sock_send(*(int *)argument, "late", 5, NULL, 0) == 0 ? NULL : argument;
}

static void test_a_waiting_receiver_gets_a_late_message(void **state)
{
    int ends[2];
    char data[8];
    void *failed;
    pthread_t thread;
    make_pair(ends);
    pthread_create(&thread, NULL, send_later, &ends[0]);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, -1), 5);
    pthread_join(thread, &failed);
    assert_null(failed);
    close_pair(ends);
}

static void test_a_closed_peer(void **state)
{
    int ends[2];
    char data[4];
    make_pair(ends);
    assert_false(sock_hung_up(ends[1]));
    assert_int_equal(sock_send(ends[0], "a", 1, NULL, 0), 0);
    assert_false(sock_hung_up(ends[1]));
    close(ends[0]);
    assert_true(sock_hung_up(ends[1]));
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, -1), 1);
    assert_int_equal(sock_recv(ends[1], data, sizeof(data), NULL, 0, NULL, -1), 0);
    int rc = sock_send(ends[1], "a", 1, NULL, 0);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    close(ends[1]);
    assert_true(sock_hung_up(ends[1]));
    assert_true(sock_hung_up(-1));
}

/* What it has sent is there, although it has not read what it was sent. */
static void test_the_last_words_of_a_closed_peer(void **state)
{
    int ends[2];
    char buffer[8];

    assert_int_equal(sock_pair(ends), 0);
    assert_int_equal(sock_send(ends[0], "unread", 6, NULL, 0), 0);
    assert_int_equal(sock_send(ends[1], "one", 3, NULL, 0), 0);
    assert_int_equal(sock_send(ends[1], "two", 3, NULL, 0), 0);
    close(ends[1]);
    assert_int_equal(sock_recv(ends[0], buffer, sizeof(buffer), NULL, 0, NULL, 0), 3);
    assert_memory_equal(buffer, "one", 3);
    assert_int_equal(sock_recv(ends[0], buffer, sizeof(buffer), NULL, 0, NULL, -1), 3);
    assert_memory_equal(buffer, "two", 3);
    assert_int_equal(sock_recv(ends[0], buffer, sizeof(buffer), NULL, 0, NULL, -1), 0);
    close(ends[0]);
}

static void test_a_peer_that_does_not_read(void **state)
{
    static char data[32768];
    int ends[2], rc;
    make_pair(ends);
    do
        rc = sock_send(ends[0], data, sizeof(data), NULL, 0);
    while (rc == 0);
    assert_int_equal(rc, -ETIMEDOUT);
    close_pair(ends);
}

static void test_refused_sends(void **state)
{
    int ends[2], fds[SOCK_FDS_MAX + 1];
    make_pair(ends);
    for (size_t i = 0; i < SOCK_FDS_MAX + 1; i++)
        fds[i] = ends[0];
    assert_int_equal(sock_send(ends[0], "", 0, NULL, 0), -EINVAL);
    assert_int_equal(sock_send(ends[0], "a", 1, fds, SOCK_FDS_MAX + 1), -EINVAL);
    assert_int_equal(sock_send(ends[0], "a", 1, fds, SOCK_FDS_MAX), 0);
    assert_int_equal(sock_send(-1, "a", 1, NULL, 0), -EBADF);
    close_pair(ends);
}

static void test_peer(void **state)
{
    int ends[2];
    pid_t pid;
    uid_t uid;
    gid_t gid;
    make_pair(ends);
    assert_int_equal(sock_peer(ends[0], &pid, &uid, &gid), 0);
    assert_int_equal(pid, getpid());
    assert_int_equal(uid, geteuid());
    assert_int_equal(gid, getegid());
    close_pair(ends);
    assert_int_equal(sock_peer(-1, &pid, &uid, &gid), -EBADF);
}

static void check_senders(bool asks)
{
    int ends[2];
    char data[64];
    pid_t sender = -1;

    make_pair(ends);
    if (asks)
        assert_int_equal(sock_ask_sender(ends[1]), 0);
    assert_int_equal(sock_recv_from(ends[1], data, sizeof(data), NULL, &sender), -EAGAIN);
    assert_int_equal(sock_send(ends[0], "own", 3, NULL, 0), 0);
    assert_int_equal(sock_recv_from(ends[1], data, sizeof(data), NULL, &sender), 3);
    assert_int_equal(sender, asks ? getpid() : 0);
    pid_t child = fork();
    if (child == 0)
        _exit(sock_send(ends[0], "child", 5, NULL, 0));
    waitpid(child, NULL, 0);
    assert_int_equal(sock_recv_from(ends[1], data, sizeof(data), NULL, &sender), 5);
    assert_int_equal(sender, asks ? child : 0);
    int before = open_fds();
    for (size_t count = 1; count <= 60; count++) {
        send_many(ends[0], 16, count);
        assert_int_equal(sock_recv_from(ends[1], data, sizeof(data), NULL, &sender), -EPROTO);
    }
    assert_int_equal(open_fds(), before);
    close_pair(ends);
}

static void test_the_sender_of_a_message(void **state)
{
    check_senders(true);
    check_senders(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_connect_accept),
        cmocka_unit_test(test_a_stale_socket_is_replaced_but_no_other_file),
        cmocka_unit_test(test_a_path_that_is_too_long),
        cmocka_unit_test(test_descriptors_travel),
        cmocka_unit_test(test_no_descriptors_in_the_next_message),
        cmocka_unit_test(test_forged_descriptor_counts_leak_nothing),
        cmocka_unit_test(test_truncated_data_leaks_nothing),
        cmocka_unit_test(test_descriptors_where_none_is_welcome),
        cmocka_unit_test(test_an_empty_message_counts_as_the_end),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_a_waiting_receiver_gets_a_late_message),
        cmocka_unit_test(test_a_closed_peer),
        cmocka_unit_test(test_the_last_words_of_a_closed_peer),
        cmocka_unit_test(test_a_peer_that_does_not_read),
        cmocka_unit_test(test_refused_sends),
        cmocka_unit_test(test_peer),
        cmocka_unit_test(test_the_sender_of_a_message),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
