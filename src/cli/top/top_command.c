/* SPDX-License-Identifier: Apache-2.0 */
/* funnel top: its options, and the plain form for pipes. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "client_table.h"
#include "text.h"
#include "top_screen.h"
#include "view_text.h"

#define TOP_COLUMNS                                                                                \
    "pid,user,group,class,lane,sm_use,gpu_use,memory,swapped,bar,limit,sms,launch_rate,copy_rate," \
    "waiting,since,command"
#define LINE_CAPACITY 512

struct run {
    struct top_options options;
    bool plain;
    uint64_t samples; /* 0: until it is ended */
};

/* ---- plain ---- */

static int print_sample(const struct top_options *options, const struct top_sample *sample)
{
    char line[LINE_CAPACITY];
    struct client_table table;
    struct client_rows rows;

    if (client_rows_make(&sample->now, sample->has_before ? &sample->before : NULL, sample->seconds,
                         &options->choice, &rows))
        return cli_fail("out of memory");
    top_sample_title(sample, line, sizeof(line));
    puts(line);
    for (unsigned i = 0; top_sample_device(sample, i, line, sizeof(line)); i++)
        puts(line);
    client_table_init(&table, options->columns, options->column_count, &rows, terminal_width());
    client_table_print(&table, &rows, stdout);
    client_rows_fini(&rows);
    return fflush(stdout) ? 1 : 0;
}

static void wait_for(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

/* The first sample is taken only to be compared with. */
static int run_plain(const struct run *run, struct top_sample *sample)
{
    int status = 0;

    if (!top_sample_take(sample))
        return cli_fail("%s", sample->reason);
    for (uint64_t i = 0; !status && (!run->samples || i < run->samples); i++) {
        if (i)
            putchar('\n');
        wait_for(run->options.interval);
        if (!top_sample_take(sample))
            return cli_fail("%s", sample->reason);
        status = print_sample(&run->options, sample);
    }
    return status;
}

/* ---- options ---- */

static int parse_grouping(const char *name, enum client_grouping *ret_grouping)
{
    static const char *const names[] = {"none", "user", "group", "server"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(names[i], name)) {
            *ret_grouping = (enum client_grouping)i;
            return 0;
        }
    return cli_usage("--tree is by user, group or server, not by %s", name);
}

static int parse_interval(const char *text, double *ret_seconds)
{
    char *end;
    double seconds = strtod(text, &end);

    if (*end || end == text || !(seconds >= 0.1 && seconds <= 3600))
        return cli_usage("--delay takes seconds from 0.1 to 3600, not %s", text);
    *ret_seconds = seconds;
    return 0;
}

static int parse_columns(const char *names, struct top_options *options)
{
    char unknown[VIEW_CELL];
    int count = client_columns_parse(names, options->columns, unknown, sizeof(unknown));

    if (count < 0)
        return cli_usage("there is no column %s; funnel help ps lists them", unknown);
    options->column_count = (unsigned)count;
    return 0;
}

static int parse_filter(const char *words, struct top_options *options)
{
    char unknown[VIEW_CELL];

    if (!text_copy(options->filter, sizeof(options->filter), words))
        return cli_usage("the filter is too long");
    options->choice.filter = options->filter;
    return client_filter_is_valid(words, unknown, sizeof(unknown))
               ? 0
               : cli_usage("there is no column %s; funnel help ps lists them", unknown);
}

static int parse_sort(const char *name, struct top_options *options)
{
    options->choice.sort = client_column_find(name, strlen(name));
    return options->choice.sort
               ? 0
               : cli_usage("there is no column %s; funnel help ps lists them", name);
}

static int parse_option(int option, struct run *run)
{
    switch (option) {
    case 'p':
        run->plain = true;
        return 0;
    case 'n':
        return text_to_u64(optarg, &run->samples) || !run->samples
                   ? cli_usage("-n takes a number above 0, not %s", optarg)
                   : 0;
    case 'd':
        return parse_interval(optarg, &run->options.interval);
    case 'c':
        return parse_columns(optarg, &run->options);
    case 'f':
        return parse_filter(optarg, &run->options);
    case 's':
        return parse_sort(optarg, &run->options);
    case 'r':
        run->options.choice.reverse = true;
        return 0;
    case 't':
        return parse_grouping(optarg, &run->options.choice.grouping);
    default:
        return cli_wrong_option();
    }
}

static int run_top(int argc, char **argv)
{
    static const struct option known[] = {
        {"plain", no_argument, NULL, 'p'},         {"delay", required_argument, NULL, 'd'},
        {"columns", required_argument, NULL, 'c'}, {"filter", required_argument, NULL, 'f'},
        {"sort", required_argument, NULL, 's'},    {"reverse", no_argument, NULL, 'r'},
        {"tree", required_argument, NULL, 't'},    {NULL, 0, NULL, 0}};
    struct run run = {.options.interval = 2};
    struct top_sample sample;
    struct paths paths;
    int option, status = parse_columns(TOP_COLUMNS, &run.options);

    run.options.choice.sort = client_column_find("sm_use", strlen("sm_use"));
    while (!status && (option = getopt_long(argc, argv, "n:d:", known, NULL)) != -1)
        status = parse_option(option, &run);
    if (status)
        return status;
    if (optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    if (cli_find_daemon(&paths))
        return 1;
    top_sample_init(&sample, &paths);
    run.plain |= run.samples != 0 || !top_screen_is_there();
    status = run.plain ? run_plain(&run, &sample) : top_screen_run(&run.options, &sample);
    top_sample_fini(&sample);
    return status;
}

const struct subcommand top_subcommands[] = {
    {"top", "what programs do, live",
     "Usage: funnel top [--plain] [-n SAMPLES] [--delay SECONDS] [--tree user|group|server]\n"
     "                  [--columns NAME,...] [--filter WORDS] [--sort NAME] [--reverse]\n\n"
     "The devices, and the programs with the share of the multiprocessors that\n"
     "their kernels take, the time with kernels on the device, launches and GB copied per second, "
     "their memory,\n"
     "and for how long they have been waiting in one call, every two seconds.\n\n"
     "  --plain          text, one sample behind the other; so does -n, or a pipe\n"
     "  -n SAMPLES       end after so many\n"
     "  -d, --delay SECONDS  between two samples (2)\n"
     "  --tree BY        programs under sums by user, group or server\n"
     "  --columns, --filter, --sort, --reverse  as of funnel ps; sorted by sm_use\n\n"
     "Keys: arrows or a click choose a program; < and > the column to sort by, r reverses; / "
     "filters; t "
     "shows\n"
     "programs by user, group and server in turn; s sets the share of the multiprocessors of the\n"
     "program, m its memory limit, p its priority; k ends it; + and - change the delay; ? helps; q "
     "quits.\n\n"
     "Examples:\n"
     "  funnel top\n"
     "  funnel top --plain -n 1 --filter user=alice\n",
     run_top},
    {NULL, NULL, NULL, NULL},
};
