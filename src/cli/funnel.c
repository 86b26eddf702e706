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

/* How many letters of the longer word are left without those that the two begin and end with. */
static size_t difference(const char *a, const char *b)
{
    size_t length = strlen(a) > strlen(b) ? strlen(a) : strlen(b);
    size_t begin = 0, end = 0;

    while (a[begin] && a[begin] == b[begin])
        begin++;
    while (end < strlen(a) - begin && end < strlen(b) - begin &&
           a[strlen(a) - 1 - end] == b[strlen(b) - 1 - end])
        end++;
    return length - begin - end;
}

/* The command that a mistyped name is nearest to, with the same first letter. At most two letters
 * beside each other are too many, missing, wrong or have changed places. NULL = none is so near. */
static const char *similar_name(const char *name)
{
    const char *best = NULL;
    size_t least = 3;

    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct subcommand *row = tables[i]; row->name; row++)
            if (*name == *row->name && difference(name, row->name) < least) {
                best = row->name;
                least = difference(name, row->name);
            }
    return best;
}

static int refuse_name(const char *name)
{
    const char *similar = similar_name(name);

    fprintf(stderr, "funnel: there is no command \"%s\"; ", name);
    if (similar)
        fprintf(stderr, "is it \"%s\"? ", similar);
    fputs("funnel help lists them\n", stderr);
    return 2;
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

    if (!row)
        return refuse_name(name);
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
    cli_words = argv;
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
