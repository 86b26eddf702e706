/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_lines.h. */
#include "daemon_lines.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command_client.h"
#include "text.h"

int daemon_connect(int *ret_fd)
{
    char reason[COMMAND_REASON_MAX];
    struct paths paths;

    if (cli_find_daemon(&paths))
        return 1;
    return command_connect(&paths, ret_fd, reason) ? cli_fail("%s", reason) : 0;
}

typedef void line_taker(void *context, const char *text);

/* The status of the command, or -errno. */
static int send_and_receive(int fd, const char *line, int file, line_taker *take, void *context)
{
    static union command_any message;
    size_t length;
    int kind = command_send_line_with(fd, line, file);

    while (kind >= 0 && kind != COMMAND_DONE) {
        kind = command_receive(fd, &message, &length);
        if (kind == COMMAND_OUTPUT)
            take(context, message.text.text);
    }
    return kind < 0 ? kind : message.done.status;
}

/* The lines so far; of a command that fails they are the reason. */
struct answer {
    char *text;
    size_t capacity;
    line_taker *take; /* gets them, too; or NULL */
    void *context;
};

static void keep_line(void *context, const char *text)
{
    struct answer *answer = context;
    size_t used = strlen(answer->text);

    text_format(answer->text + used, answer->capacity - used, "%s%s", used ? "\n" : "", text);
    if (answer->take)
        answer->take(answer->context, text);
}

static int ask(int fd, const char *line, int file, struct answer *answer)
{
    int status;

    *answer->text = '\0';
    status = send_and_receive(fd, line, file, keep_line, answer);
    if (status < 0)
        text_copy(answer->text, answer->capacity, command_lost(status));
    return status != 0;
}

int daemon_try(int fd, const char *line, char *ret_answer, size_t capacity)
{
    return daemon_try_with(fd, line, -1, ret_answer, capacity);
}

int daemon_try_with(int fd, const char *line, int file, char *ret_answer, size_t capacity)
{
    return ask(fd, line, file, &(struct answer){ret_answer, capacity, NULL, NULL});
}

int daemon_ask(int fd, const char *line, line_taker *take, void *context)
{
    char text[COMMAND_TEXT_MAX * 2];

    int status = ask(fd, line, -1, &(struct answer){text, sizeof(text), take, context});

    return status ? cli_fail("%s", text) : 0;
}

static int run_line(int fd, const char *line, int file, bool quiet)
{
    char text[COMMAND_TEXT_MAX * 2];
    int status = ask(fd, line, file, &(struct answer){text, sizeof(text), NULL, NULL});

    if (status)
        return cli_fail("%s", text);
    if (!quiet && *text)
        puts(text);
    return 0;
}

int daemon_run_line(int fd, const char *line, bool quiet)
{
    return run_line(fd, line, -1, quiet);
}

int daemon_run_line_with(int fd, const char *line, int file)
{
    return run_line(fd, line, file, false);
}

int daemon_start_server(int fd)
{
    char line[DAEMON_LINE_MAX];

    text_format(line, sizeof(line), "start_server -uid %u", (unsigned)geteuid());
    return daemon_run_line(fd, line, true);
}

bool daemon_user_id(const char *text, char *ret_uid, size_t capacity)
{
    const struct passwd *entry = getpwnam(text);
    uint64_t uid;

    if (entry)
        return text_format(ret_uid, capacity, "%u", (unsigned)entry->pw_uid);
    return !text_to_u64(text, &uid) && text_copy(ret_uid, capacity, text);
}
