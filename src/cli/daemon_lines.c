/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_lines.h. */
#include "daemon_lines.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

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

/* The lines so far; of a command that fails they are the reason. */
struct answer {
    char text[COMMAND_TEXT_MAX * 2];
    size_t used;
};

static void keep(struct answer *answer, const char *text)
{
    size_t room = sizeof(answer->text) - answer->used;

    if (text_format(answer->text + answer->used, room, "%s%s", answer->used ? "\n" : "", text))
        answer->used += strlen(answer->text + answer->used);
}

int daemon_ask(int fd, const char *line, void (*take)(void *context, const char *text),
               void *context)
{
    static union command_any message;
    struct answer answer = {.used = 0};
    size_t length;
    int kind = 0;

    if (command_send_line(fd, line))
        return cli_fail("the daemon is gone");
    while (kind != COMMAND_DONE) {
        kind = command_receive(fd, &message, &length);
        if (kind < 0)
            return cli_fail("the daemon is gone: %s", strerror(-kind));
        if (kind != COMMAND_OUTPUT)
            continue;
        keep(&answer, message.text.text);
        take(context, message.text.text);
    }
    return message.done.status ? cli_fail("%s", answer.text) : 0;
}

static void keep_line(void *context, const char *text)
{
    keep(context, text);
}

int daemon_run_line(int fd, const char *line, bool quiet)
{
    struct answer answer = {.used = 0};
    int status = daemon_ask(fd, line, keep_line, &answer);

    if (!status && !quiet && answer.used)
        puts(answer.text);
    return status;
}

bool daemon_user_id(const char *text, char *ret_uid, size_t capacity)
{
    const struct passwd *entry = getpwnam(text);
    uint64_t uid;

    if (entry)
        return text_format(ret_uid, capacity, "%u", (unsigned)entry->pw_uid);
    return !text_to_u64(text, &uid) && text_copy(ret_uid, capacity, text);
}
