/* SPDX-License-Identifier: Apache-2.0 */
/* See peer_program.h. */
#include "peer_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control_group.h"
#include "fd.h"
#include "process_stat.h"
#include "sock.h"
#include "text.h"

/* ---- what the kernel tells ---- */

/* A link of /proc leads to the file itself, whatever its name is by now. The attributes are those
 * that the kernel has. */
static struct client_file find_file(pid_t pid, const char *link)
{
    struct client_file file = {0};
    struct statx status;
    char path[64];

    text_format(path, sizeof(path), "/proc/%d/%s", (int)pid, link);
    if (pid <= 0 || statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_BTIME, &status))
        return file;
    file.device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    file.inode = status.stx_ino;
    if (status.stx_mask & STATX_BTIME) {
        file.born_s = status.stx_btime.tv_sec;
        file.born_ns = status.stx_btime.tv_nsec;
    }
    return file;
}

/* Of a long path the end, which tells more. */
static void find_path(pid_t pid, char ret_path[CLIENT_PROGRAM_NAME_MAX])
{
    char link[64], path[4096];

    text_format(link, sizeof(link), "/proc/%d/exe", (int)pid);
    ssize_t length = pid > 0 ? readlink(link, path, sizeof(path) - 1) : 0;
    size_t size = length > 0 ? (size_t)length : 0, cut = 0;

    if (size >= CLIENT_PROGRAM_NAME_MAX)
        cut = size - (CLIENT_PROGRAM_NAME_MAX - 1);
    path[size] = '\0';
    text_copy(ret_path, CLIENT_PROGRAM_NAME_MAX, path + cut);
}

/* ---- interpreters ---- */

/* They may be followed by anything but a letter, as in python3.11 and ld-linux-x86-64.so.2. */
static const char *const interpreters[] = {"python", "pypy", "julia",  "java",   "node",  "nodejs",
                                           "perl",   "ruby", "lua",    "luajit", "php",   "R",
                                           "mono",   "ld",   "MATLAB", "dotnet", "octave"};

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_interpreter(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++)
        if (text_starts_with(name, interpreters[i]) && !is_letter(name[strlen(interpreters[i])]))
            return true;
    return false;
}

/* The first argument that is no option, which NULs separate; "" = there is none. */
static void find_script(const struct hello *hello, char script[CLIENT_PROGRAM_NAME_MAX])
{
    size_t at = strnlen(hello->command, sizeof(hello->command)) + 1;

    while (at < sizeof(hello->command) && hello->command[at] == '-')
        at += strnlen(hello->command + at, sizeof(hello->command) - at) + 1;
    if (at < sizeof(hello->command))
        text_format(script, CLIENT_PROGRAM_NAME_MAX, "%.*s", (int)(sizeof(hello->command) - at),
                    hello->command + at);
}

static void look_at_script(pid_t pid, const struct hello *hello, struct client_program *program)
{
    find_script(hello, program->script);
    if (*program->script != '/')
        program->folder = find_file(pid, "cwd");
}

void peer_program_look(int fd, const struct hello *hello, struct server_identity *identity,
                       struct client_program *ret_program)
{
    _cleanup_fd_ int process = -1;
    int error = sock_peer_process(fd, &process);
    struct client_program program = {.uid = identity->uid};
    pid_t pid = identity->pid;

    program.executable = find_file(pid, "exe");
    program.container = find_file(pid, "ns/pid").inode;
    find_path(pid, program.path);
    if (is_interpreter(program.path))
        look_at_script(pid, hello, &program);
    if (error == -ESRCH || process_has_ended(process))
        program = (struct client_program){.uid = identity->uid};
    identity->pid_namespace = program.container;
    *ret_program = program;
}

/* They are those of this process only if it has not ended meanwhile. */
int peer_program_groups(int fd, pid_t pid, char **ret_groups)
{
    _cleanup_fd_ int process = -1;
    char *groups = NULL;
    int error = sock_peer_process(fd, &process);

    if (!error)
        error = control_groups_read("/proc", pid, &groups);
    if (process >= 0 && process_has_ended(process))
        error = -ESRCH;
    if (error)
        free(groups);
    else
        *ret_groups = groups;
    return error;
}
