/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_identity.h. */
#include "peer_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"
#include "grammar.h"
#include "text.h"

static ssize_t read_proc(pid_t pid, const char *name, char *data, size_t capacity)
{
    char path[64];
    _cleanup_fd_ int fd = -1;

    text_format(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : read(fd, data, capacity);
}

/* Arguments are joined by blanks, and what could move a cursor becomes '?'. */
static void make_readable(char *command, size_t length)
{
    while (length > 0 && command[length - 1] == '\0')
        length--;
    command[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    text_make_printable(command);
}

static void read_command(pid_t pid, const struct hello *hello, char *command, size_t capacity)
{
    ssize_t length = pid > 0 ? read_proc(pid, "cmdline", command, capacity - 1) : 0;

    if (length <= 0) {
        text_format(command, capacity, "%.*s", (int)sizeof(hello->program), hello->program);
        length = (ssize_t)strlen(command);
    }
    make_readable(command, (size_t)length);
}

static uint64_t read_pid_namespace(pid_t pid)
{
    char path[64];
    struct stat status;

    text_format(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return pid > 0 && !stat(path, &status) ? status.st_ino : 0;
}

void peer_identity_complete(struct server_identity *identity, const struct hello *hello)
{
    identity->since = time(NULL);
    identity->pid_namespace = read_pid_namespace(identity->pid);
    read_command(identity->pid, hello, identity->command, sizeof(identity->command));
    if (text_ended(hello->group, sizeof(hello->group)) && grammar_is_name(hello->group))
        text_copy(identity->group, sizeof(identity->group), hello->group);
}
