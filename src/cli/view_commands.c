/* SPDX-License-Identifier: Apache-2.0 */
/* funnel status, ps, servers, clients, devices, limits: one question to the daemon, several views.
 */
#include <getopt.h>
#include <stdio.h>

#include "cli.h"
#include "command_client.h"
#include "view.h"

/* 0 and 1: text or JSON; 2: usage. */
static int parse_view(int argc, char **argv)
{
    static const struct option known[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    int option, json = 0;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option != 'j')
            return cli_usage("unknown option");
        json = 1;
    }
    return optind < argc ? cli_usage("unexpected argument: %s", argv[optind]) : json;
}

static void show_text(const struct snapshot *snapshot, const struct paths *paths,
                      enum json_view view)
{
    switch (view) {
    case JSON_STATUS:
        view_status(snapshot, paths);
        break;
    case JSON_CLIENTS:
        view_clients(snapshot);
        break;
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
}

static int show(int argc, char **argv, enum json_view view)
{
    char reason[COMMAND_REASON_MAX];
    struct snapshot snapshot;
    struct paths paths;
    int format = parse_view(argc, argv);
    int status = 0;

    if (format > 1)
        return format;
    if (cli_find_daemon(&paths))
        return 1;
    if (snapshot_take(&paths, &snapshot, reason))
        return cli_fail("%s", reason);
    if (format)
        status = view_json(&snapshot, &paths, view);
    else
        show_text(&snapshot, &paths, view);
    snapshot_fini(&snapshot);
    return status;
}

static int run_status(int argc, char **argv)
{
    return show(argc, argv, JSON_STATUS);
}

static int run_clients(int argc, char **argv)
{
    return show(argc, argv, JSON_CLIENTS);
}

static int run_servers(int argc, char **argv)
{
    return show(argc, argv, JSON_SERVERS);
}

static int run_devices(int argc, char **argv)
{
    return show(argc, argv, JSON_DEVICES);
}

static int run_limits(int argc, char **argv)
{
    return show(argc, argv, JSON_LIMITS);
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
     "Usage: funnel ps [--json]\n\n"
     "Who runs, on which server and device, with how much device memory, what share of the SMs, "
     "how\n"
     "many launches and copies so far, and since when.\n\n"
     "Examples:\n"
     "  funnel ps\n"
     "  watch -n1 funnel ps\n",
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
