/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_left.h. A group's limit holds for the groups below it, too. */
#include "memory_left.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_group.h"
#include "text.h"

#define LINE_MAX_BYTES 256

/* The files of a version. Where there is no limit, the first has "max", or a number beyond all. */
struct files {
    const char *limit, *used, *idle;
};

static const struct files version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                       "total_inactive_file %llu"};
static const struct files version_2 = {"memory.max", "memory.current", "inactive_file %llu"};

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The first line that fits the format; false where there is none. */
static bool read_number(const char *directory, const char *file, const char *format,
                        uint64_t *ret_number)
{
    char path[PATH_MAX], line[LINE_MAX_BYTES];
    unsigned long long number = 0;
    bool found = false;

    if (!text_format(path, sizeof(path), "%s/%s", directory, file))
        return false;
    FILE *in = fopen(path, "re");
    while (in && !found && fgets(line, sizeof(line), in))
        found = sscanf(line, format, &number) == 1;
    if (in)
        fclose(in);
    *ret_number = number;
    return found;
}

static uint64_t left_in_group(const char *directory, const struct files *files)
{
    uint64_t limit, used, idle;

    if (!read_number(directory, files->limit, "%llu", &limit) ||
        !read_number(directory, files->used, "%llu", &used))
        return UINT64_MAX;
    if (read_number(directory, "memory.stat", files->idle, &idle))
        used -= smaller_of(used, idle);
    return used < limit ? limit - used : 0;
}

/* Cuts a name off the end of `directory` until that is the root of the hierarchy. */
static uint64_t left_in_groups(char *directory, size_t root, const struct files *files)
{
    uint64_t left = left_in_group(directory, files);

    while (strlen(directory) > root) {
        *strrchr(directory, '/') = '\0';
        left = smaller_of(left, left_in_group(directory, files));
    }
    return left;
}

/* A group outside of the caller's own cgroup namespace is not to be seen, but the namespace's root
 * is. */
static uint64_t left_in_hierarchy(const char *root, const char *groups, const char *controller,
                                  const struct files *files)
{
    char path[PATH_MAX], directory[PATH_MAX];
    bool is_seen = control_groups_path(groups, controller, path, sizeof(path));

    if (!text_format(directory, sizeof(directory), "%s%s", root, is_seen ? path : ""))
        return 0;
    return left_in_groups(directory, strlen(root), files);
}

static uint64_t left_by_groups(const char *proc, const char *root, pid_t pid)
{
    char *groups, memory_root[PATH_MAX];

    if (!text_format(memory_root, sizeof(memory_root), "%s/memory", root) ||
        control_groups_read(proc, pid, &groups))
        return 0;
    uint64_t left = smaller_of(left_in_hierarchy(root, groups, "", &version_2),
                               left_in_hierarchy(memory_root, groups, "memory", &version_1));
    free(groups);
    return left;
}

uint64_t memory_left(const char *proc, const char *root, pid_t pid)
{
    uint64_t kibibytes;

    if (!read_number(proc, "meminfo", "MemAvailable: %llu", &kibibytes))
        return 0;
    return smaller_of(kibibytes << 10, left_by_groups(proc, root, pid));
}
