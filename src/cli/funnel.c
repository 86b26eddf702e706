/* SPDX-License-Identifier: Apache-2.0 */
/* funnel: the front end for people. Each subcommand is a row of a table with its own help. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct subcommand *const tables[] = {
    run_subcommands,     checkpoint_subcommands, pack_subcommands,   daemon_subcommands,
    why_subcommands,     top_subcommands,        view_subcommands,   limit_subcommands,
    manage_subcommands,  enable_subcommands,     trace_subcommands,  usage_subcommands,
    metrics_subcommands, cdi_subcommands,        divert_subcommands, cache_subcommands};

#define TABLE_COUNT (sizeof(tables) / sizeof(*tables))

static const struct subcommand *find_subcommand(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct subcommand *row = tables[i]; row->name; row++)
            if (!strcmp(row->name, name))
                return row;
    return NULL;
}

static void print_help(FILE *out)
{
    fputs("Usage: funnel COMMAND [OPTION...]\n\n"
          "Several CUDA programs share one GPU at the same time.\n\n",
          out);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct subcommand *row = tables[i]; row->name; row++)
            fprintf(out, "  %-10s %s\n", row->name, row->summary);
    fputs("  help       help on a command: funnel help run\n"
          "  version    print the release\n\n"
          "The daemon is found through CUDA_MPS_PIPE_DIRECTORY, as NVIDIA's is.\n",
          out);
}

static int help_on(const char *name)
{
    const struct subcommand *row = find_subcommand(name);

    if (!row) {
        fprintf(stderr, "funnel: there is no command \"%s\"; funnel help lists them\n", name);
        return 2;
    }
    fputs(row->help, stdout);
    return 0;
}

/* Only among the command's own options: what follows a program's name is the program's. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static int dispatch(int argc, char **argv)
{
    cli_current = find_subcommand(argv[0]);
    if (!cli_current)
        return help_on(argv[0]);
    if (wants_help(argc, argv))
        return help_on(argv[0]);
    opterr = 0;
    return cli_current->run(argc, argv);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
        puts("funnel " FUNNEL_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "help") && strcmp(argv[1], "--help") && strcmp(argv[1], "-h"))
        return dispatch(argc - 1, argv + 1);
    if (argc > 2)
        return help_on(argv[2]);
    print_help(stdout);
    return 0;
}
