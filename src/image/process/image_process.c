/* SPDX-License-Identifier: Apache-2.0 */
/* The answer ends when its process ends, and that process has a limit of CPU time. So no timeout is
 * needed. */
#include "image_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "process_main.h"
#include "shm.h"
#include "sock.h"
#include "text.h"

#define GREETING_TIMEOUT_MS 60000
#define ANSWER_FIRST 65536u /* bytes; then twice as many, as far as there is more */

struct image_process {
    struct image_process_kind kind;
    int socket;
};

static int await_greeting(const struct image_process *process, char *why, size_t why_size)
{
    struct process_greeting greeting;
    size_t count;

    if (!process->kind.prepare)
        return 0;
    if (sock_recv(process->socket, &greeting, sizeof(greeting), NULL, 0, &count,
                  GREETING_TIMEOUT_MS) != (ssize_t)sizeof(greeting)) {
        text_format(why, why_size, "it crashed, or took too long");
        return -EPIPE;
    }
    greeting.why[sizeof(greeting.why) - 1] = '\0';
    text_format(why, why_size, "%s", greeting.why);
    return greeting.why[0] ? -EINVAL : 0;
}

static int begin_process(struct image_process *process)
{
    int pair[2];
    int error = sock_pair(pair);

    if (error)
        return error;
    pid_t pid = fork();
    if (pid == 0)
        process_main(pair[1], &process->kind);
    error = pid < 0 ? -errno : 0;
    fd_close(&pair[1]);
    process->socket = pair[0];
    return error;
}

int image_process_start(const struct image_process_kind *kind, char *why, size_t why_size,
                        struct image_process **ret_process)
{
    struct image_process *process = calloc(1, sizeof(*process));
    int error = -ENOMEM;

    if (process) {
        *process = (struct image_process){.kind = *kind, .socket = -1};
        error = begin_process(process);
    }
    if (error)
        text_format(why, why_size, "%s", strerror(-error));
    else
        error = await_greeting(process, why, why_size);
    if (error) {
        image_process_stop(process);
        return error;
    }
    *ret_process = process;
    return 0;
}

void image_process_stop(struct image_process *process)
{
    if (!process)
        return;
    fd_close(&process->socket);
    free(process);
}

/* Sends the image and one end of a pipe. Returns the other end, or -errno. */
static int send_image(const struct image_process *process, int fd, size_t size,
                      const struct image_task *task)
{
    const struct process_request request = {.size = size, .task = *task};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    const int fds[PROCESS_FDS] = {fd, ends[1]};
    int error = sock_send(process->socket, &request, sizeof(request), fds, PROCESS_FDS);
    fd_close(&ends[1]);
    if (!error)
        return ends[0];
    fd_close(&ends[0]);
    return error;
}

int image_process_ask(const struct image_process *process, const struct image_source *source,
                      const struct image_task *task)
{
    _cleanup_fd_ int own = -1;
    int error = 0;

    if (source->fd < 0)
        error = shm_create_read_only("funnel-image", source->bytes, source->size, &own);
    return error ? error : send_image(process, own >= 0 ? own : source->fd, source->size, task);
}

/* Reads until the buffer is full or the other end is closed. Returns the size so far, or -errno. */
static ssize_t fill_answer(int fd, char *answer, size_t size, size_t capacity)
{
    while (size < capacity) {
        ssize_t more = read(fd, answer + size, capacity - size);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (!more)
            break;
        size += (size_t)more;
    }
    return (ssize_t)size;
}

/* Reads until the other end is closed. Returns the size; -EBADMSG beyond `most`; -errno. */
static ssize_t read_answer(int fd, size_t most, char **answer)
{
    size_t capacity = ANSWER_FIRST;
    ssize_t size = 0;

    for (;;) {
        char *larger = realloc(*answer, capacity);

        if (!larger)
            return -ENOMEM;
        *answer = larger;
        size = fill_answer(fd, *answer, (size_t)size, capacity);
        if (size < 0 || (size_t)size < capacity)
            return size > (ssize_t)most ? -EBADMSG : size;
        if (capacity > most)
            return -EBADMSG;
        capacity *= 2;
    }
}

int image_process_answer(const struct image_process *process, int pipe, void **ret_answer,
                         size_t *ret_size)
{
    _cleanup_fd_ int fd = pipe;
    _cleanup_free_ char *answer = NULL;
    ssize_t size = read_answer(fd, process->kind.answer_max, &answer);

    if (size < 0)
        return (int)size;
    if (size == 0)
        return sock_hung_up(process->socket) ? -EPIPE : -EBADMSG;
    *ret_answer = steal_pointer(answer);
    *ret_size = (size_t)size;
    return 0;
}
