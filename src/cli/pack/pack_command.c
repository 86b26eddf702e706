/* SPDX-License-Identifier: Apache-2.0 */
/* funnel pack. */
#include <getopt.h>

#include "checkpoint_pack.h"
#include "cli.h"

struct choice {
    bool compress, clean;
};

static bool take_options(int argc, char **argv, struct choice *ret_choice)
{
    static const struct option known[] = {
        {"zstd", no_argument, NULL, 'z'}, {"clean", no_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
    int option;

    *ret_choice = (struct choice){.clean = false};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option != 'z' && option != 'c')
            return false;
        *(option == 'z' ? &ret_choice->compress : &ret_choice->clean) = true;
    }
    return true;
}

static int pack_all(const char *path, bool compress, int count, char **directories)
{
    struct chunk_store store;
    int status = 0;

    if (pack_open_store(&store, path, compress))
        return 1;
    for (int i = 0; i < count && !status; i++)
        status = checkpoint_pack(directories[i], &store);
    chunk_store_close(&store);
    return status;
}

static int run_pack(int argc, char **argv)
{
    struct choice choice;

    if (!take_options(argc, argv, &choice))
        return cli_usage("unknown option");
    int count = argc - optind;
    if (choice.clean && count == 1 && !choice.compress)
        return pack_clean_store(argv[optind]);
    if (choice.clean)
        return cli_usage("--clean takes a store alone");
    if (count < 2)
        return cli_usage("into which store, and which checkpoints?");
    return pack_all(argv[optind], choice.compress, count - 1, argv + optind + 1);
}

const struct subcommand pack_subcommands[] = {
    {"pack", "store the equal parts of checkpoints once",
     "Usage: funnel pack [--zstd] STORE DIRECTORY...\n"
     "       funnel pack --clean STORE\n\n"
     "Moves the contents of checkpoints into chunks of 2 MiB. Chunks with equal bytes are one "
     "file,\n"
     "with a hard link in the store and in each checkpoint. So the next checkpoint of a program\n"
     "takes space for what has changed, and each is complete without the store. Store and\n"
     "checkpoints are on one file system. funnel restore makes the memory of a packed checkpoint\n"
     "again.\n\n"
     "      --zstd     compress chunks that are new\n"
     "      --clean    delete the chunks of checkpoints that have been deleted\n\n"
     "Examples:\n  funnel pack /scratch/store /scratch/monday /scratch/tuesday\n"
     "  rm -r /scratch/monday && funnel pack --clean /scratch/store\n",
     run_pack},
    {NULL, NULL, NULL, NULL},
};
