/* SPDX-License-Identifier: Apache-2.0 */
/* funnel metrics: the daemon's numbers as Prometheus reads them. */
#include <stdio.h>

#include "cli.h"
#include "command_client.h"
#include "fd.h"

/* 0, or -errno when the daemon is gone. */
static int print_answer(int fd, int *ret_status)
{
    union command_any message;
    size_t length = 0;
    int kind;

    while ((kind = command_receive_bytes(fd, &message, &length)) == COMMAND_OUTPUT)
        fwrite(message.text.text, 1, length, stdout);
    if (kind < 0)
        return kind;
    *ret_status = message.done.status;
    return 0;
}

static int run_metrics(int argc, char **argv)
{
    char reason[COMMAND_REASON_MAX];
    struct paths paths;
    _cleanup_fd_ int fd = -1;
    int status = 0;

    if (argc > 1)
        return cli_usage("unexpected argument: %s", argv[1]);
    if (cli_find_daemon(&paths))
        return 1;
    if (command_connect(&paths, &fd, reason))
        return cli_fail("%s", reason);
    int error = command_send_metrics_query(fd);
    if (!error)
        error = print_answer(fd, &status);
    if (error)
        return cli_fail("%s", command_lost(error));
    return status ? cli_fail("the daemon is out of memory") : 0;
}

const struct subcommand metrics_subcommands[] = {
    {"metrics", "what clients use, for Prometheus",
     "Usage: funnel metrics\n"
     "\n"
     "Prints what clients, users, servers and GPUs use, in the text format of Prometheus. The\n"
     "daemon serves the same over HTTP: funneld --metrics 127.0.0.1:9400, /metrics there.\n"
     "docs/accounting.md explains the names.\n"
     "\n"
     "Example: funnel metrics | grep sm_seconds\n",
     run_metrics},
    {0}};
