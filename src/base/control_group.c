/* SPDX-License-Identifier: Apache-2.0 */
/* See control_group.h. A line is "ID:CONTROLLERS:PATH", in version 2 "0::PATH". The kernel allows
 * no newline in the name of a group, but colons. */
#include "control_group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

#define GROUPS_MAX (128u << 10)

int control_groups_read(const char *proc, pid_t pid, char **ret_groups)
{
    char path[PATH_MAX], *text;
    size_t size = 0;
    ssize_t part;

    text_format(path, sizeof(path), "%s/%d/cgroup", proc, (int)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    text = malloc(GROUPS_MAX);
    if (!text)
        return -ENOMEM;
    while ((part = read(fd, text + size, GROUPS_MAX - size)) > 0)
        size += (size_t)part;
    int error = part < 0 ? -errno : size == GROUPS_MAX ? -E2BIG : 0;
    if (error) {
        free(text);
        return error;
    }
    text[size] = '\0';
    *ret_groups = text;
    return 0;
}

/* Text that is not ended by a NUL. */
struct span {
    const char *text;
    size_t length;
};

static bool span_begins_with(struct span span, const char *text, size_t length)
{
    return span.length >= length && !memcmp(span.text, text, length);
}

/* Takes what comes before the first `end` off the front; all of it where there is none. */
static struct span span_split(struct span *rest, char end)
{
    const char *found = memchr(rest->text, end, rest->length);
    struct span front = {rest->text, found ? (size_t)(found - rest->text) : rest->length};
    size_t taken = front.length + (found ? 1 : 0);

    rest->text += taken;
    rest->length -= taken;
    return front;
}

/* Both paths are absolute, and the root is "". */
static int path_levels_below(struct span path, const char *group)
{
    size_t length = strlen(group);
    int levels = 0;

    if (!span_begins_with(path, group, length) ||
        (path.length > length && path.text[length] != '/'))
        return -1;
    for (size_t i = length; i < path.length; i++)
        levels += path.text[i] == '/';
    return levels;
}

/* `mount` is the directory of a hierarchy in /sys/fs/cgroup, `group` an operator's path behind
 * that. */
static int mount_levels_below(struct span mount, struct span path, const char *group)
{
    if (mount.length == 0 || strncmp(group + 1, mount.text, mount.length))
        return -1;
    group += 1 + mount.length;
    return *group == '\0' || *group == '/' ? path_levels_below(path, group) : -1;
}

static int nearer(int one, int other)
{
    if (one < 0 || other < 0)
        return one < 0 ? other : one;
    return one < other ? one : other;
}

/* A hierarchy of version 1 has the name of its controllers, and mostly one for each of them. Beside
 * others that of version 2 is called unified. */
static int hierarchy_levels_below(struct span controllers, struct span path, const char *group)
{
    struct span rest = controllers;
    int levels;

    if (controllers.length == 0)
        return nearer(path_levels_below(path, group),
                      mount_levels_below((struct span){"unified", 7}, path, group));
    if (span_begins_with(controllers, "name=", 5))
        rest = controllers = (struct span){controllers.text + 5, controllers.length - 5};
    levels = mount_levels_below(controllers, path, group);
    while (rest.length)
        levels = nearer(levels, mount_levels_below(span_split(&rest, ','), path, group));
    return levels;
}

/* False for a line without a path that the caller can see. */
static bool split_line(struct span line, struct span *ret_controllers, struct span *ret_path)
{
    span_split(&line, ':');
    *ret_controllers = span_split(&line, ':');
    if (line.length == 0 || *line.text != '/' || span_begins_with(line, "/..", 3))
        return false;
    if (line.length == 1)
        line.length = 0;
    *ret_path = line;
    return true;
}

static int line_levels_below(struct span line, const char *group)
{
    struct span controllers, path;

    return split_line(line, &controllers, &path) ? hierarchy_levels_below(controllers, path, group)
                                                 : -1;
}

static bool has_controller(struct span controllers, const char *controller)
{
    size_t length = strlen(controller);

    if (!length)
        return controllers.length == 0;
    while (controllers.length) {
        struct span name = span_split(&controllers, ',');

        if (name.length == length && span_begins_with(name, controller, length))
            return true;
    }
    return false;
}

bool control_groups_path(const char *groups, const char *controller, char *ret_path,
                         size_t capacity)
{
    struct span rest = {groups, strlen(groups)}, controllers, path;

    while (rest.length) {
        struct span line = span_split(&rest, '\n');

        if (split_line(line, &controllers, &path) && has_controller(controllers, controller))
            return text_format(ret_path, capacity, "%.*s", (int)path.length, path.text);
    }
    return false;
}

int control_groups_levels_below(const char *groups, const char *group)
{
    struct span rest = {groups, strlen(groups)};
    int levels = -1;

    if (!text_starts_with(group, CONTROL_GROUP_ROOT "/"))
        return -1;
    group += strlen(CONTROL_GROUP_ROOT);
    while (rest.length)
        levels = nearer(levels, line_levels_below(span_split(&rest, '\n'), group));
    return levels;
}
