/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon answers to `funnel status`, `ps` and the others, which show it in every form. The
 * input is a program that makes the answers: for each a kind, a byte that fills it, and changes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_columns.h"
#include "command_client.h"
#include "fuzz.h"
#include "snapshot.h"
#include "sock.h"
#include "top_sample.h"
#include "view_limits.h"
#include "view_text.h"

#define ANSWERS_MAX 12 /* a socket takes so many without a reader */
#define LINE 1024

struct input {
    const uint8_t *at;
    size_t left;
};

static unsigned take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* Of a text, and of an unknown kind, there is some more than the header. */
static size_t size_of(unsigned kind)
{
    size_t least = command_least_size(kind);

    if (kind == COMMAND_DONE)
        return sizeof(struct command_done);
    return least == SIZE_MAX || kind == COMMAND_OUTPUT ? sizeof(struct command_header) + kind % 64
                                                       : least;
}

/* So many bytes at an offset: sizes and counts lie anywhere. */
static void change(struct input *input, unsigned char *message, size_t size)
{
    size_t offset = take(input) << 8;
    size_t count;

    offset = (offset + take(input)) % size;
    for (count = 1 + take(input) % 8; count > 0 && offset < size; count--)
        message[offset++] = (unsigned char)take(input);
}

static bool send_answer(struct input *input, int fd)
{
    static union command_any message;
    unsigned what = take(input), fill = take(input);
    unsigned kind = COMMAND_OUTPUT + what % 9;
    size_t size = size_of(kind);

    memset(&message, (int)fill, sizeof(message));
    message.header = (struct command_header){COMMAND_MAGIC, kind};
    for (unsigned changes = what >> 5; changes > 0; changes--)
        change(input, (unsigned char *)&message, size);
    return send(fd, &message, size, MSG_DONTWAIT) == (ssize_t)size;
}

static void send_answers(struct input *input, int fd)
{
    const struct command_done done = {{COMMAND_MAGIC, COMMAND_DONE}, COMMAND_OK};
    unsigned count = 0;

    while (input->left > 0 && count++ < ANSWERS_MAX && send_answer(input, fd))
        ;
    send(fd, &done, sizeof(done), MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
}

static void show_top(const struct snapshot *snapshot)
{
    struct top_sample sample = {.now = *snapshot, .has_now = true, .fd = -1};
    char line[LINE];

    top_sample_title(&sample, line, sizeof(line));
    for (unsigned i = 0; top_sample_device(&sample, i, line, sizeof(line)); i++)
        ;
}

/* Every column, and the rows in groups. */
static void show_columns(const struct snapshot *snapshot)
{
    char names[LINE] = "";
    size_t used = 0;

    for (const struct client_column *column = client_columns; column->name; column++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? "," : "",
                                 column->name);
    view_clients(snapshot, names);
    for (enum client_grouping grouping = GROUP_NOT; grouping <= GROUP_BY_SERVER; grouping++) {
        const struct client_choice choice = {.filter = "a", .grouping = grouping};
        struct client_rows rows;

        if (!client_rows_make(snapshot, snapshot, 1, &choice, &rows))
            client_rows_fini(&rows);
    }
}

static void show(const struct snapshot *snapshot)
{
    static const struct paths paths;

    view_status(snapshot, &paths);
    view_servers(snapshot);
    view_devices(snapshot);
    view_limits(snapshot);
    show_columns(snapshot);
    show_top(snapshot);
#ifdef HAVE_JANSSON
    for (enum json_view view = JSON_STATUS; view <= JSON_LIMITS; view++)
        if (view_json(snapshot, &paths, view))
            abort();
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int null = -1;
    struct input input = {data, size};
    struct snapshot snapshot;
    int ends[2];

    if (null < 0 && (null = open("/dev/null", O_WRONLY | O_CLOEXEC)) >= 0)
        dup2(null, STDOUT_FILENO);
    if (sock_pair(ends))
        return 0;
    send_answers(&input, ends[0]);
    if (!snapshot_read(ends[1], &snapshot)) {
        show(&snapshot);
        snapshot_fini(&snapshot);
    }
    close(ends[0]);
    close(ends[1]);
    return 0;
}
