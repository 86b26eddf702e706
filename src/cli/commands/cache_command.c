/* SPDX-License-Identifier: Apache-2.0 */
/* funnel cache: the code that servers of this user keep on disk. No daemon is needed for it. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "code_kernels.h"
#include "code_list.h"
#include "view_text.h"

static int open_cache(struct code_directory *ret_directory)
{
    char path[PATH_MAX];
    int error;

    if (!code_directory_path(path, sizeof(path)))
        return cli_fail("FUNNEL_CACHE_PATH is no absolute path, or there is no home directory");
    error = code_directory_open(ret_directory, path, false);
    if (error == -EPERM)
        return cli_fail("%s does not belong to this user with mode 0700", path);
    if (error && error != -ENOENT)
        return cli_fail("%s: %s", path, strerror(-error));
    return 0;
}

static int read_list(struct code_directory *directory, struct code_list *ret_list)
{
    int status = open_cache(directory);

    *ret_list = (struct code_list){0};
    if (status || directory->fd < 0)
        return status;
    if (code_list_read(directory, ret_list))
        return cli_fail("%s cannot be read", directory->path);
    return 0;
}

static unsigned count_kernels(const struct code_directory *directory, const char *name)
{
    struct code_kernels kernels = {0};

    code_kernels_load(directory, name, &kernels);
    free(kernels.names);
    return kernels.count;
}

/* One that is not valid is deleted and left out. */
static void print_entry(const struct code_directory *directory, const struct code_listed *entry)
{
    char bytes[VIEW_CELL], since[VIEW_CELL], user[VIEW_CELL];
    struct code_origin origin;
    uint64_t size;

    if (code_entry_peek(directory, entry->name, &origin, &size))
        return;
    view_format_bytes(entry->bytes, bytes);
    view_format_since(entry->used, since);
    view_format_user(origin.owner, user);
    printf("%-33s %-10s %-10s %-8u %-8s %2u.%-6u %-7u %s\n", entry->name, bytes, user,
           count_kernels(directory, entry->name), origin.is_soft ? "software" : "NVIDIA",
           origin.compute_capability / 10, origin.compute_capability % 10, origin.driver_version,
           since);
}

static void print_list(const struct code_directory *directory, const struct code_list *list)
{
    char bytes[VIEW_CELL], most[VIEW_CELL];

    if (list->count)
        printf("%-33s %-10s %-10s %-8s %-8s %-9s %-7s %s\n", "NAME", "SIZE", "USER", "KERNELS",
               "GPU", "CAPABILITY", "DRIVER", "USED");
    for (unsigned i = 0; i < list->count; i++)
        print_entry(directory, &list->entries[i]);
    view_format_bytes(list->bytes, bytes);
    view_format_bytes(code_directory_limit(), most);
    printf("%s: %u entr%s, %s of at most %s\n", directory->path, list->count,
           list->count == 1 ? "y" : "ies", bytes, most);
}

static void clear(const struct code_directory *directory, const struct code_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        code_entry_delete(directory, list->entries[i].name);
    printf("%s: deleted %u entr%s\n", directory->path, list->count, list->count == 1 ? "y" : "ies");
}

static int run_cache(int argc, char **argv)
{
    struct code_directory directory = {.fd = -1};
    struct code_list list;
    int status;

    if (argc != 2 || (strcmp(argv[1], "list") && strcmp(argv[1], "clear")))
        return cli_usage("list or clear is expected");
    status = read_list(&directory, &list);
    if (!status && !strcmp(argv[1], "list"))
        print_list(&directory, &list);
    else if (!status)
        clear(&directory, &list);
    code_list_fini(&list);
    code_directory_close(&directory);
    return status;
}

const struct subcommand cache_subcommands[] = {
    {"cache", "list or delete the code that is kept for later servers",
     "Usage: funnel cache list\n"
     "       funnel cache clear\n"
     "\n"
     "Servers keep the code that programs have loaded on disk, and load it again while no program\n"
     "is busy, so that no program waits for it. It is in FUNNEL_CACHE_PATH, by default\n"
     "~/.cache/funnel, and /var/cache/funnel for root, and takes at most FUNNEL_CACHE_MAXSIZE,\n"
     "512M. Servers that run go on with what they have loaded after clear.\n"
     "\n"
     "Example: funnel cache list\n",
     run_cache},
    {0}};
