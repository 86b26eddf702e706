/* SPDX-License-Identifier: Apache-2.0 */
#include "process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

static struct process_stat read_stat(const char *path)
{
    char text[1024];
    struct process_stat stat;
    unsigned long long started;

    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    /* A name may have blanks and brackets in it. */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest,
                        ") %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        &stat.state, &stat.flags, &started) != 3)
        return (struct process_stat){.state = 0};
    stat.started = started;
    return stat;
}

struct process_stat process_stat_read(pid_t pid)
{
    char path[40];

    text_format(path, sizeof(path), "/proc/%d/stat", (int)pid);
    return read_stat(path);
}

struct process_stat process_stat_own(void)
{
    return read_stat("/proc/self/stat");
}

bool process_is_gone(pid_t pid)
{
    return pid > 0 && kill(pid, 0) && errno == ESRCH;
}

bool process_has_ended(int process_fd)
{
    struct pollfd poller = {.fd = process_fd, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}
