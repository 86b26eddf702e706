/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_left.h. A group's limit holds for the groups below it, too. */
#include "memory_left.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define LINE_MAX_BYTES (PATH_MAX + 256)

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
static uint64_t left_at(const char *root, const char *path, const struct files *files)
{
    bool is_seen = !text_starts_with(path, "/..") && strcmp(path, "/") != 0;
    char directory[PATH_MAX];

    if (!text_format(directory, sizeof(directory), "%s%s", root, is_seen ? path : ""))
        return 0;
    return left_in_groups(directory, strlen(root), files);
}

static bool is_of_memory(const char *controllers)
{
    return !strcmp(controllers, "memory") || text_starts_with(controllers, "memory,") ||
           strstr(controllers, ",memory");
}

/* Of a line "ID:CONTROLLERS:PATH"; "0::PATH" is of version 2. */
static uint64_t left_by_line(const char *groups, char *line)
{
    char root[PATH_MAX], *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!path)
        return UINT64_MAX;
    controllers++;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (!*controllers)
        return left_at(groups, path, &version_2);
    if (!is_of_memory(controllers) || !text_format(root, sizeof(root), "%s/memory", groups))
        return UINT64_MAX;
    return left_at(root, path, &version_1);
}

static uint64_t left_by_groups(const char *proc, const char *groups, pid_t pid)
{
    char path[PATH_MAX], line[LINE_MAX_BYTES];
    uint64_t left = UINT64_MAX;

    if (!text_format(path, sizeof(path), "%s/%d/cgroup", proc, (int)pid))
        return 0;
    FILE *in = fopen(path, "re");
    if (!in)
        return 0;
    while (fgets(line, sizeof(line), in))
        left = smaller_of(left, left_by_line(groups, line));
    fclose(in);
    return left;
}

uint64_t memory_left(const char *proc, const char *groups, pid_t pid)
{
    uint64_t kibibytes;

    if (!read_number(proc, "meminfo", "MemAvailable: %llu", &kibibytes))
        return 0;
    return smaller_of(kibibytes << 10, left_by_groups(proc, groups, pid));
}
