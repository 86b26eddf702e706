/* SPDX-License-Identifier: Apache-2.0 */
/* funnel usage: what programs that have ended used, for those who pay for it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli.h"
#include "usage_files.h"
#include "usage_period.h"
#include "usage_print.h"

enum usage_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };

static int parse_time(const char *option, const char *text, int64_t *ret_time)
{
    return usage_time_parse(text, time(NULL), ret_time)
               ? 0
               : cli_usage("%s takes an age such as 90m, 12h, 7d or 2w, or a day such as "
                           "2026-11-01, not %s",
                           option, text);
}

static int parse_usage_option(int option, struct usage_report *report, enum usage_format *format)
{
    switch (option) {
    case 'b':
        return usage_report_parse_keys(report, optarg)
                   ? 0
                   : cli_usage("--by takes some of user, group, server, namespace and day, each "
                               "once, not %s",
                               optarg);
    case 's':
        return parse_time("--since", optarg, &report->since);
    case 'u':
        return parse_time("--until", optarg, &report->until);
    case 'c':
    case 'j':
        if (*format != FORMAT_TEXT)
            return cli_usage("--csv and --json contradict each other");
        *format = option == 'c' ? FORMAT_CSV : FORMAT_JSON;
        return 0;
    default:
        return cli_wrong_option();
    }
}

static int parse_usage(int argc, char **argv, struct usage_report *report,
                       enum usage_format *format)
{
    static const struct option known[] = {
        {"by", required_argument, NULL, 'b'},    {"since", required_argument, NULL, 's'},
        {"until", required_argument, NULL, 'u'}, {"csv", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},        {NULL, 0, NULL, 0}};
    int option, status = 0;

    while (!status && (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        status = parse_usage_option(option, report, format);
    if (!status && optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    if (!status && report->since >= report->until)
        return cli_usage("--since is not before --until");
    return status;
}

static int read_journal(const struct paths *paths, struct usage_report *report)
{
    int status = usage_files_read(paths->log, usage_report_add, report);

    if (!status && report->incomplete)
        status = cli_fail("out of memory");
    if (!status && report->unreadable)
        cli_fail("%u line%s of the journal in %s cannot be read and %s missing here",
                 report->unreadable, report->unreadable == 1 ? "" : "s", paths->log,
                 report->unreadable == 1 ? "is" : "are");
    usage_report_sort(report);
    return status;
}

static int print_usage(const struct usage_report *report, enum usage_format format)
{
    if (format == FORMAT_JSON)
        return usage_print_json(report);
    if (format == FORMAT_CSV)
        usage_print_csv(report);
    else
        usage_print_text(report);
    return fflush(stdout) ? 1 : 0;
}

static int run_usage(int argc, char **argv)
{
    struct usage_report report = {.until = time(NULL) + 1};
    enum usage_format format = FORMAT_TEXT;
    struct paths paths;
    int status;

    usage_report_parse_keys(&report, "user");
    status = parse_usage(argc, argv, &report, &format);
    if (status)
        return status;
#ifndef HAVE_JANSSON
    return cli_fail("this build cannot read the journal: it was made without the jansson library");
#endif
    status = cli_find_daemon(&paths);
    if (status)
        return status;
    cli_find_logs(&paths);
    status = read_journal(&paths, &report);
    if (!status)
        status = print_usage(&report, format);
    usage_report_fini(&report);
    return status;
}

const struct subcommand usage_subcommands[] = {
    {"usage", "what programs that have ended used, by user or group",
     "Usage: funnel usage [--by KEY,...] [--since WHEN] [--until WHEN] [--csv | --json]\n\n"
     "Adds up the daemon's journal of programs that have ended, usage.jsonl and the older files\n"
     "beside it in the log directory, which only the daemon's user may read. No daemon has to "
     "run.\n"
     "A program counts in whole when it ends; those that run are in funnel ps --json.\n\n"
     "  --by KEY,...    of user, group, server, namespace and day (on which it ended); user\n"
     "  --since WHEN    programs that ended since: 90m, 12h, 7d or 2w ago, or a day: 2026-11-01\n"
     "  --until WHEN    and before\n"
     "  --csv, --json   seconds and bytes, under the names of docs/json.md; else hours\n\n"
     "GPU hours are time with kernels on a device, SM hours the multiprocessors that they had,\n"
     "each counted by itself.\n\n"
     "Examples:\n"
     "  funnel usage --since 7d\n"
     "  funnel usage --by user,group --since 2026-11-01 --until 2026-12-01 --csv\n",
     run_usage},
    {NULL, NULL, NULL, NULL},
};
