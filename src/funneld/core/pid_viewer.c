/* SPDX-License-Identifier: Apache-2.0 */
/* See pid_viewer.h. */
#include "pid_viewer.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

#define LEVELS_MAX 33 /* that the kernel nests */

/* Its numbers from the daemon's namespace to its own, of "NSpid:" in proc(5): how many. */
static unsigned read_numbers(pid_t pid, pid_t ret_numbers[LEVELS_MAX])
{
    char path[40], text[8192];
    unsigned count = 0;

    text_format(path, sizeof(path), "/proc/%d/status", (int)pid);
    _cleanup_fd_ int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    char *at = strstr(text, "\nNSpid:");
    for (at = at ? at + strlen("\nNSpid:") : NULL; at && *at == '\t' && count < LEVELS_MAX;)
        ret_numbers[count++] = (pid_t)strtol(at + 1, &at, 10);
    return count;
}

/* The inode of the namespace that is so many levels above the process's own; 0 = not known. */
static uint64_t find_space(pid_t pid, unsigned above)
{
    struct stat status;
    char path[40];

    text_format(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (; fd >= 0 && above > 0; above--) {
        int parent = ioctl(fd, NS_GET_PARENT);

        fd_close(&fd);
        fd = parent;
    }
    return fd >= 0 && !fstat(fd, &status) ? status.st_ino : 0;
}

struct pid_viewer pid_viewer_of(pid_t pid)
{
    pid_t numbers[LEVELS_MAX];
    unsigned level = read_numbers(pid, numbers);

    return (struct pid_viewer){level, level > 1 ? find_space(pid, 0) : 0};
}

pid_t pid_seen_by(const struct pid_viewer *viewer, pid_t pid)
{
    pid_t numbers[LEVELS_MAX];
    unsigned level;

    if (viewer->level <= 1 || pid <= 0)
        return viewer->level == 1 ? pid : 0;
    level = read_numbers(pid, numbers);
    if (level < viewer->level || !viewer->space ||
        find_space(pid, level - viewer->level) != viewer->space)
        return 0;
    return numbers[viewer->level - 1];
}
