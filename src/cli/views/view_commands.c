/* SPDX-License-Identifier: Apache-2.0 */
/* funnel status, ps, servers, clients, devices, limits: one question to the daemon, several views.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "client_columns.h"
#include "command_client.h"
#include "text.h"
#include "view_json.h"
#include "view_limits.h"
#include "view_text.h"

struct view_options {
    bool json;
    const char *columns;         /* NULL: the usual ones */
    struct client_choice choice; /* of clients */
};

/* Words of several --filter are put together. */
static int add_filter(char *filter, size_t capacity, const char *words)
{
    size_t used = strlen(filter);
    char unknown[VIEW_CELL];

    if (!text_format(filter + used, capacity - used, "%s%s", used ? " " : "", words))
        return cli_usage("the filter is too long");
    return client_filter_is_valid(words, unknown, sizeof(unknown))
               ? 0
               : cli_usage("there is no column %s; funnel help ps lists them", unknown);
}

static int parse_client_option(int option, struct view_options *options)
{
    static char filter[1024];

    if (option == 'c') {
        options->columns = optarg;
        return 0;
    }
    if (option == 'r') {
        options->choice.reverse = true;
        return 0;
    }
    if (option == 'f') {
        options->choice.filter = filter;
        return add_filter(filter, sizeof(filter), optarg);
    }
    options->choice.sort = client_column_find(optarg, strlen(optarg));
    return options->choice.sort
               ? 0
               : cli_usage("there is no column %s; funnel help ps lists them", optarg);
}

/* 0, or 2 after an error message. */
static int parse_view(int argc, char **argv, bool of_clients, struct view_options *options)
{
    static const struct option known[] = {
        {"json", no_argument, NULL, 'j'},         {"columns", required_argument, NULL, 'c'},
        {"filter", required_argument, NULL, 'f'}, {"sort", required_argument, NULL, 's'},
        {"reverse", no_argument, NULL, 'r'},      {NULL, 0, NULL, 0}};
    int option, status = 0;

    while (!status && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'j')
            options->json = true;
        else if (option == '?')
            return cli_wrong_option();
        else if (!of_clients)
            return cli_usage("only funnel ps has options besides --json");
        else
            status = parse_client_option(option, options);
    }
    if (status)
        return status;
    return optind < argc ? cli_usage("unexpected argument: %s", argv[optind]) : 0;
}

/* Leaves the clients that were asked for in the snapshot, in the order that was asked for. */
static int choose_clients(struct snapshot *snapshot, const struct client_choice *choice)
{
    struct client_rows rows;
    struct command_client *clients;

    if (client_rows_make(snapshot, NULL, 1, choice, &rows))
        return cli_fail("out of memory");
    clients = calloc(rows.count + 1, sizeof(*clients));
    for (unsigned i = 0; clients && i < rows.count; i++)
        clients[i] = *rows.row[i].client;
    if (clients) {
        free(snapshot->clients);
        snapshot->clients = clients;
        snapshot->client_count = rows.count;
    }
    client_rows_fini(&rows);
    return clients ? 0 : cli_fail("out of memory");
}

static int show_text(const struct snapshot *snapshot, const struct paths *paths,
                     enum json_view view, const char *columns)
{
    switch (view) {
    case JSON_STATUS:
        view_status(snapshot, paths);
        break;
    case JSON_CLIENTS:
        return view_clients(snapshot, columns);
    case JSON_SERVERS:
        view_servers(snapshot);
        break;
    case JSON_DEVICES:
        view_devices(snapshot);
        break;
    case JSON_LIMITS:
        view_limits(snapshot);
        break;
    }
    return 0;
}

static int show_view(int argc, char **argv, enum json_view view)
{
    struct view_options options = {.json = false};
    char reason[COMMAND_REASON_MAX];
    struct snapshot snapshot;
    struct paths paths;
    int status = parse_view(argc, argv, view == JSON_CLIENTS, &options);

    if (status)
        return status;
    if (cli_find_daemon(&paths))
        return 1;
    if (snapshot_take(&paths, &snapshot, reason))
        return cli_fail("%s", reason);
    if (view == JSON_CLIENTS)
        status = choose_clients(&snapshot, &options.choice);
    if (!status)
        status = options.json ? view_json(&snapshot, &paths, view)
                              : show_text(&snapshot, &paths, view, options.columns);
    snapshot_fini(&snapshot);
    return status;
}

static int run_status(int argc, char **argv)
{
    return show_view(argc, argv, JSON_STATUS);
}

static int run_clients(int argc, char **argv)
{
    return show_view(argc, argv, JSON_CLIENTS);
}

static int run_servers(int argc, char **argv)
{
    return show_view(argc, argv, JSON_SERVERS);
}

static int run_devices(int argc, char **argv)
{
    return show_view(argc, argv, JSON_DEVICES);
}

static int run_limits(int argc, char **argv)
{
    return show_view(argc, argv, JSON_LIMITS);
}

const struct subcommand view_subcommands[] = {
    {"status", "everything on one screen",
     "Usage: funnel status [--json]\n\n"
     "The daemon, its servers, their devices and the programs that run. Exit status 1 when no\n"
     "daemon runs.\n\n"
     "Examples:\n"
     "  funnel status\n"
     "  funnel status --json | jq '.clients[].pid'\n",
     run_status},
    {"ps", "programs that run through Funnel",
     "Usage: funnel ps [--columns NAME,...] [--filter WORDS] [--sort NAME] [--reverse] [--json]\n\n"
     "Who runs, on which server and device, with how much device memory, what share of the SMs, "
     "how\n"
     "many launches and copies so far, and since when. On a terminal that is narrow the columns\n"
     "that are missed least are left out.\n\n"
     "  --columns NAME,...  of pid, id, user, group, class, lane, server, device, memory, peak,\n"
     "                      bar, limit, sms, granted (multiprocessors), priority, launches,\n"
     "                      copies, sm_use, gpu_use (percent of a device; of a group in top its\n"
     "                      busiest program's, as kernels overlap), launch_rate, copy_rate (per "
     "second;\n"
     "                      these four are averages since the start), waiting, cause, since,\n"
     "                      command\n"
     "  --filter WORDS      programs that fit all words: NAME=VALUE, or a part of the command,\n"
     "                      user, group, server or process id\n"
     "  --sort NAME         by this column: numbers from the largest, names from A; --reverse\n\n"
     "Examples:\n"
     "  funnel ps\n"
     "  funnel ps --filter 'user=alice train' --sort memory\n"
     "  funnel ps --columns pid,memory,command\n",
     run_clients},
    {"clients", "the same as ps",
     "Usage: funnel clients [--json]\n\nThe same as funnel ps.\n\nExample:\n  funnel clients "
     "--json\n",
     run_clients},
    {"servers", "servers: one a user, and those with names",
     "Usage: funnel servers [--json]\n\n"
     "Servers, whose they are, their state and how many programs they have. The server of a "
     "user's\n"
     "programs is called uid_N; those that nvidia-cuda-mps-control server create has named start\n"
     "for their first program. A program chooses one by its pipe directory.\n\n"
     "Examples:\n"
     "  funnel servers\n"
     "  CUDA_MPS_PIPE_DIRECTORY=$(funnel servers --json |\n"
     "    jq -r '.[] | select(.name == \"night\").pipe_directory') funnel run -- ./train\n",
     run_servers},
    {"devices", "devices that servers work on",
     "Usage: funnel devices [--json]\n\n"
     "The devices of each server that runs, with their SMs and memory.\n\n"
     "Example:\n  funnel devices --json\n",
     run_devices},
    {"limits", "limits that are set, and what each program gets",
     "Usage: funnel limits [--json]\n\n"
     "First what has been set, and for whom: defaults of the daemon, then servers, namespaces,\n"
     "users and groups; what comes further down takes the place of what comes above, and a\n"
     "program may ask for less. Then what each program has been granted of each device.\n"
     "funnel limit, funnel provision and nvidia-cuda-mps-control set limits.\n\n"
     "Examples:\n"
     "  funnel limits\n"
     "  funnel limits --json | jq '.clients[].devices'\n",
     run_limits},
    {NULL, NULL, NULL, NULL},
};
