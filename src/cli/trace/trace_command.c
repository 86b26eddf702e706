/* SPDX-License-Identifier: Apache-2.0 */
/* funnel trace. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#include "cli.h"
#include "text.h"
#include "trace_data.h"

static volatile sig_atomic_t stopped;

static void on_interrupt(int number)
{
    stopped = 1;
}

struct trace_options {
    uint64_t seconds, client;
    const char *path; /* NULL: none */
    bool summary;
};

static int parse_trace(int argc, char **argv, struct trace_options *options)
{
    static const struct option known[] = {{"client", required_argument, NULL, 'c'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"summary", no_argument, NULL, 'S'},
                                          {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "o:", known, NULL)) != -1) {
        if (option == 'c' && (text_to_u64(optarg, &options->client) || !options->client ||
                              options->client > INT32_MAX))
            return cli_usage("%s is not the process id of a program", optarg);
        if (option == 's' &&
            (text_to_u64(optarg, &options->seconds) || !options->seconds || options->seconds > 600))
            return cli_usage("--seconds takes a number from 1 to 600, not %s", optarg);
        if (option == 'o')
            options->path = optarg;
        if (option == 'S')
            options->summary = true;
        if (option == '?')
            return cli_wrong_option();
    }
    if (optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    return options->path || options->summary ? 0 : cli_usage("-o FILE or --summary is missing");
}

static unsigned count_work(const struct trace_data *data)
{
    unsigned count = 0;

    for (unsigned i = 0; i < data->count; i++)
        count += trace_is_work(&data->entries[i]);
    return count;
}

static int run_trace(int argc, char **argv)
{
    struct trace_options options = {.seconds = 5};
    struct trace_data data;
    int status = parse_trace(argc, argv, &options);

    if (status)
        return status;
    signal(SIGINT, on_interrupt);
    if (trace_take((unsigned)options.seconds, (long)options.client, &stopped, &data))
        return 1;
    if (options.path)
        status = trace_write_json(&data, options.path);
    if (!status && options.path)
        printf("%s: %u records, %u of them work on devices; open it in https://ui.perfetto.dev or "
               "chrome://tracing\n",
               options.path, data.count, count_work(&data));
    if (!status && options.summary)
        status = trace_print_summary(&data);
    if (!status && data.lost)
        printf("%llu pieces of work are missing: they had not ended, or there was no space.\n",
               (unsigned long long)data.lost);
    trace_fini(&data);
    return status;
}

const struct subcommand trace_subcommands[] = {
    {"trace", "a time line of what programs do on the device",
     "Usage: funnel trace [--client PID] [--seconds N] [-o FILE] [--summary]\n\n"
     "For some seconds (5; at most 600) servers write down the commands of each program that they\n"
     "execute, and when the device does the work. Kernels are shown by name, with copies, memsets\n"
     "and graphs, for how long each was queued, and behind whose work. Ctrl-C ends it early.\n\n"
     "Ranges that programs set with NVTX, and cuProfilerStart, are shown, too.\n\n"
     "      --client PID  of this program only\n"
     "  -o, --output FILE  JSON for Perfetto (ui.perfetto.dev) and chrome://tracing\n"
     "      --summary     print the kernels of each program that took longest\n\n"
     "While it goes on, launches go to the device one by one, which costs programs with short\n"
     "kernels some speed; without a trace it costs nothing.\n\n"
     "Examples:\n"
     "  funnel trace --seconds 2 -o trace.json\n"
     "  funnel trace --client 4711 --summary\n",
     run_trace},
    {NULL, NULL, NULL, NULL},
};
