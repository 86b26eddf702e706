/* SPDX-License-Identifier: Apache-2.0 */
/* See query.h. */
#include "query.h"

#include <unistd.h>

#include "command_protocol.h"
#include "console.h"
#include "funneld_server.h"
#include "newcomer.h"
#include "survey.h"
#include "text.h"

static void send_daemon(struct console *console)
{
    const struct daemon *daemon = console->daemon;
    struct command_daemon message = {
        .header = {COMMAND_MAGIC, COMMAND_DAEMON},
        .pid = getpid(),
        .uid = daemon->uid,
        .since = daemon->since,
        .sm_centipercent = daemon->defaults.sm_centipercent,
        .priority = daemon->defaults.priority,
        .waiting = newcomer_count_waiting(daemon),
        .quitting = daemon->quitting,
    };

    text_copy(message.device, sizeof(message.device), daemon->device);
    text_copy(message.version, sizeof(message.version), FUNNEL_VERSION);
    text_copy(message.log_directory, sizeof(message.log_directory), daemon->paths.log);
    console_send(console, &message, sizeof(message));
}

static void send_part(struct console *console, const struct survey_part *part)
{
    struct command_client message = {.header = {COMMAND_MAGIC, COMMAND_CLIENT},
                                     .server_pid = part->server.pid};

    console_send(console, &part->server, sizeof(part->server));
    for (unsigned i = 0; i < part->client_count; i++) {
        message.row = part->clients[i];
        console_send(console, &message, sizeof(message));
    }
}

static void on_surveyed(struct survey *survey, void *context)
{
    struct console *console = context;

    send_daemon(console);
    for (unsigned i = 0; i < survey->part_count; i++)
        send_part(console, &survey->parts[i]);
    console_done(console, COMMAND_OK);
}

static bool may_see(const struct server *server, const void *console)
{
    return console_may_touch(console, server);
}

void query_answer(struct console *console)
{
    if (survey_start(console->daemon, may_see, console, on_surveyed, console))
        console_done(console, COMMAND_FAILED);
}
