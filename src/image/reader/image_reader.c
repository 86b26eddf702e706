/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the answer is the end of the process that gives it, so there is nothing to time. */
#include "image_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "log.h"
#include "reader_process.h"
#include "shm.h"
#include "sock.h"

struct image_reader {
    int socket;
    atomic_bool lost; /* and the log says so */
};

int image_reader_start(image_look *look, unsigned cpu_seconds, struct image_reader **ret_reader)
{
    struct image_reader *reader = calloc(1, sizeof(*reader));
    int pair[2];
    int error = reader ? sock_pair(pair) : -ENOMEM;

    if (error) {
        free(reader);
        return error;
    }
    pid_t pid = fork();
    if (pid == 0)
        reader_process_run(pair[1], look, cpu_seconds);
    error = pid < 0 ? -errno : 0;
    fd_close(&pair[1]);
    reader->socket = pair[0];
    if (error) {
        image_reader_stop(reader);
        return error;
    }
    *ret_reader = reader;
    return 0;
}

void image_reader_stop(struct image_reader *reader)
{
    if (!reader)
        return;
    fd_close(&reader->socket);
    free(reader);
}

/* ---- one image ---- */

/* Sends the image and the end of a pipe: the other end, or -errno. */
static int send_image(const struct image_reader *reader, int fd, size_t size, unsigned sm)
{
    const struct reader_request request = {.size = size, .sm = sm};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    const int fds[READER_FDS] = {fd, ends[1]};
    int error = sock_send(reader->socket, &request, sizeof(request), fds, READER_FDS);
    fd_close(&ends[1]);
    if (!error)
        return ends[0];
    fd_close(&ends[0]);
    return error;
}

/* All that comes until the other end is closed: its size; -EBADMSG when it is too much, -errno. */
static ssize_t read_answer(int fd, char *answer)
{
    size_t size = 0;

    for (;;) {
        ssize_t more = read(fd, answer + size, IMAGE_FACTS_MAX + 1 - size);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        size += (size_t)more;
        if (!more || size > IMAGE_FACTS_MAX)
            return size <= IMAGE_FACTS_MAX ? (ssize_t)size : -EBADMSG;
    }
}

static int receive_facts(const struct image_reader *reader, int fd, struct image_facts *ret_facts)
{
    _cleanup_free_ char *answer = malloc(IMAGE_FACTS_MAX + 1);
    ssize_t size = answer ? read_answer(fd, answer) : -ENOMEM;

    if (size == 0 && sock_hung_up(reader->socket))
        return -EPIPE;
    return size < 0 ? (int)size : image_facts_parse(answer, (size_t)size, ret_facts);
}

static void assume(struct image_reader *reader, int error, struct image_facts *ret_facts)
{
    if (!atomic_exchange(&reader->lost, true))
        log_line("The process that reads images cannot be reached (error %d): from now on nothing "
                 "is known of them, and each client loads its own",
                 -error);
    image_facts_assume(ret_facts);
}

static int ask(const struct image_reader *reader, const struct image_source *source, unsigned sm)
{
    _cleanup_fd_ int own = -1;
    int error = 0;

    if (source->fd < 0)
        error = shm_create_read_only("funnel-image", source->bytes, source->size, &own);
    return error ? error : send_image(reader, own >= 0 ? own : source->fd, source->size, sm);
}

void image_reader_begin(const struct image_reader *reader, const struct image_source *source,
                        unsigned sm, struct image_question *ret_question)
{
    *ret_question = (struct image_question){
        .source = source, .sm = sm, .answer = reader ? ask(reader, source, sm) : -1};
}

int image_reader_end(struct image_reader *reader, struct image_question *question,
                     struct image_facts *ret_facts)
{
    const struct image_source *source = question->source;
    _cleanup_fd_ int answer = reader && question->answer >= 0 ? question->answer : -1;

    if (!reader) {
        image_facts_read(source->bytes, source->size, question->sm, ret_facts);
        return 0;
    }
    int error = answer < 0 ? question->answer : receive_facts(reader, answer, ret_facts);
    if (!error || error == -EBADMSG || error == -ENOMEM)
        return error;
    assume(reader, error, ret_facts);
    return 0;
}
