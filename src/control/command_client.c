/* SPDX-License-Identifier: Apache-2.0 */
/* See command_client.h. */
#include "command_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_class.h"
#include "command_check.h"
#include "daemon_trust.h"
#include "fd.h"
#include "hello.h"
#include "isolation.h"
#include "sock.h"
#include "text.h"

#define WELCOME_TIMEOUT_MS 10000

static int describe_error(const struct paths *paths, int error, char *reason)
{
    if (error == -ENAMETOOLONG)
        text_format(reason, COMMAND_REASON_MAX,
                    "The pipe directory's path is longer than the %zu bytes a socket's address can "
                    "hold; set CUDA_MPS_PIPE_DIRECTORY to a shorter one",
                    paths_pipe_max());
    else if (error == -EPERM)
        text_format(reason, COMMAND_REASON_MAX,
                    "The process that listens at %.200s is neither root's nor this user's: another "
                    "user may have made that directory first. Choose one with "
                    "CUDA_MPS_PIPE_DIRECTORY, or name that user with FUNNEL_DAEMON_UID",
                    paths->socket);
    else if (error == -EACCES)
        text_format(reason, COMMAND_REASON_MAX, "No permission to reach %.300s", paths->socket);
    else if (error == -ENOTDIR)
        text_format(reason, COMMAND_REASON_MAX,
                    "%.200s cannot be reached, because a part of its path is not a directory; "
                    "choose another one with CUDA_MPS_PIPE_DIRECTORY",
                    paths->socket);
    else
        text_format(reason, COMMAND_REASON_MAX,
                    "No daemon listens at %.300s; funnel start starts one there", paths->socket);
    return error;
}

/* Of a program to be, class and isolation say which server starts meanwhile. */
static void init_hello(struct hello *hello, enum hello_kind kind)
{
    const char *class = getenv("FUNNEL_CLASS"), *isolation = getenv("FUNNEL_ISOLATE");

    memset(hello, 0, sizeof(*hello));
    hello->magic = HELLO_MAGIC;
    hello->version = HELLO_VERSION;
    hello->kind = kind;
    hello->priority = HELLO_PRIORITY_UNSET;
    if (class)
        client_class_parse(class, &hello->class);
    if (isolation)
        isolation_parse(isolation, &hello->isolation);
    text_copy(hello->program, sizeof(hello->program), program_invocation_short_name);
    text_copy(hello->release, sizeof(hello->release), FUNNEL_VERSION);
}

const char *command_lost(int error)
{
    switch (error) {
    case -EPIPE:
    case -ECONNRESET:
        return "funneld has ended before it answered; start it again with: funnel start";
    case -ETIMEDOUT:
        return "funneld does not answer; control.log may say why";
    case -EPROTO:
    case -EMSGSIZE:
        return "funneld's answer is not understood; is it of another release?";
    }
    return strerror(-error);
}

static int receive_welcome(int fd, int timeout_ms, char *reason)
{
    struct welcome welcome;
    size_t fds = 0;
    ssize_t got = sock_recv(fd, &welcome, sizeof(welcome), NULL, 0, &fds, timeout_ms);

    if (got != sizeof(welcome) || welcome.magic != WELCOME_MAGIC) {
        text_copy(reason, COMMAND_REASON_MAX, command_lost(got ? (int)got : -EPIPE));
        return got < 0 ? (int)got : -EPROTO;
    }
    if (welcome.status == 0)
        return 0;
    text_make_printable_array(welcome.text, sizeof(welcome.text));
    text_copy(reason, COMMAND_REASON_MAX, welcome.text);
    return -EPERM;
}

int command_connect_within(const struct paths *paths, enum hello_kind kind, int timeout_ms,
                           int *ret_fd, char ret_reason[COMMAND_REASON_MAX])
{
    _cleanup_fd_ int fd = -1;
    struct hello hello;
    int error = daemon_connect_trusted(paths->socket, &fd);

    if (error)
        return describe_error(paths, error, ret_reason);
    init_hello(&hello, kind);
    error = sock_send(fd, &hello, sizeof(hello), NULL, 0);
    if (error)
        return describe_error(paths, error, ret_reason);
    error = receive_welcome(fd, timeout_ms, ret_reason);
    if (!error)
        *ret_fd = fd_steal(&fd);
    return error;
}

int command_connect(const struct paths *paths, int *ret_fd, char ret_reason[COMMAND_REASON_MAX])
{
    return command_connect_within(paths, HELLO_COMMAND, WELCOME_TIMEOUT_MS, ret_fd, ret_reason);
}

int command_connect_ahead(const struct paths *paths, int *ret_fd,
                          char ret_reason[COMMAND_REASON_MAX])
{
    return command_connect_within(paths, HELLO_AHEAD, WELCOME_TIMEOUT_MS, ret_fd, ret_reason);
}

int command_send_line(int fd, const char *line)
{
    return command_send_line_with(fd, line, -1);
}

int command_send_line_with(int fd, const char *line, int file)
{
    struct command_text message = {{COMMAND_MAGIC, COMMAND_LINE}, ""};
    size_t length = strlen(line);

    if (length > sizeof(message.text))
        return -EMSGSIZE;
    memcpy(message.text, line, length);
    return sock_send(fd, &message, sizeof(message.header) + length, &file, file >= 0);
}

int command_send_query(int fd)
{
    struct command_header message = {COMMAND_MAGIC, COMMAND_QUERY};

    return sock_send(fd, &message, sizeof(message), NULL, 0);
}

int command_send_metrics_query(int fd)
{
    struct command_header message = {COMMAND_MAGIC, COMMAND_METRICS};

    return sock_send(fd, &message, sizeof(message), NULL, 0);
}

size_t command_least_size(uint32_t kind)
{
    switch (kind) {
    case COMMAND_OUTPUT:
        return sizeof(struct command_header);
    case COMMAND_DAEMON:
        return sizeof(struct command_daemon);
    case COMMAND_SERVER:
        return sizeof(struct command_server);
    case COMMAND_CLIENT:
        return sizeof(struct command_client);
    case COMMAND_LIMIT:
        return sizeof(struct command_limit);
    case COMMAND_QUOTA:
        return sizeof(struct command_quota);
    case COMMAND_TRACE:
        return sizeof(struct command_trace);
    case COMMAND_DONE:
        return offsetof(struct command_done, reason); /* of daemons that do not give one */
    }
    return SIZE_MAX;
}

/* Its kind, or -errno. Only the sizes have been checked. */
static int receive(int fd, int timeout_ms, union command_any *ret_message, size_t *ret_length,
                   int *ret_file)
{
    size_t fds = 0;
    ssize_t got = sock_recv(fd, ret_message, sizeof(*ret_message), ret_file, 1, &fds, timeout_ms);

    if (got <= 0 || fds == 0)
        *ret_file = -1;

    if (got <= 0)
        return got ? (int)got : -EPIPE;
    if ((size_t)got < sizeof(struct command_header) || ret_message->header.magic != COMMAND_MAGIC ||
        (size_t)got < command_least_size(ret_message->header.kind))
        return -EPROTO;
    if (ret_message->header.kind == COMMAND_DONE && (size_t)got < sizeof(struct command_done))
        ret_message->done.reason = 0;
    *ret_length = (size_t)got - sizeof(struct command_header);
    if (ret_message->header.kind == COMMAND_OUTPUT && *ret_length < COMMAND_TEXT_MAX)
        ret_message->text.text[*ret_length] = '\0';
    else if (ret_message->header.kind == COMMAND_OUTPUT)
        return -EPROTO;
    return (int)ret_message->header.kind;
}

int command_receive(int fd, union command_any *ret_message, size_t *ret_length)
{
    return command_receive_within(fd, -1, ret_message, ret_length);
}

int command_receive_within(int fd, int timeout_ms, union command_any *ret_message,
                           size_t *ret_length)
{
    _cleanup_fd_ int file = -1;
    int kind = receive(fd, timeout_ms, ret_message, ret_length, &file);

    if (kind >= 0)
        command_make_safe(ret_message);
    return kind;
}

int command_receive_file(int fd, union command_any *ret_message, size_t *ret_length, int *ret_file)
{
    int kind = receive(fd, -1, ret_message, ret_length, ret_file);

    if (kind >= 0)
        command_make_safe(ret_message);
    return kind;
}

int command_receive_bytes(int fd, union command_any *ret_message, size_t *ret_length)
{
    _cleanup_fd_ int file = -1;

    return receive(fd, -1, ret_message, ret_length, &file);
}
