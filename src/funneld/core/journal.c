/* SPDX-License-Identifier: Apache-2.0 */
/* See journal.h. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "append_file.h"
#include "clock.h"
#include "fd.h"
#include "log.h"
#include "paths.h"
#include "text.h"

#define ROLE "Control"

static int log_fd = -1;
static bool to_stdout;

static int open_log(const char *path, int *ret_fd)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int journal_open(const char *directory, bool foreground)
{
    char path[PATH_MAX];
    int fd = -1;
    int error = path_join(directory, "control.log", path, sizeof(path));

    if (!error)
        error = open_log(path, &fd);
    if (error)
        return error;
    fchmod(fd, 0600); /* it has the command lines of all users' programs */
    log_open(fd, ROLE);
    fd_close(&log_fd);
    log_fd = fd;
    to_stdout = foreground;
    return 0;
}

/* ---- accounts ---- */

#define ACCOUNTS 64 /* users whose numbers end alike share one */
#define ACCOUNT_NS (60 * NS_PER_SEC)

static struct account {
    uint64_t since;
    uint64_t bytes;
} accounts[ACCOUNTS];

static uid_t account_owner;
static uint64_t account_bytes = 256u << 10;

void journal_set_quota(uint64_t bytes)
{
    account_bytes = bytes;
}

uid_t journal_account(uid_t uid)
{
    uid_t before = account_owner;

    account_owner = uid;
    return before;
}

/* Whether the line may be written. When the limit is reached, a last line says so. */
static bool charge(char text[1024])
{
    struct account *account = &accounts[account_owner % ACCOUNTS];
    uint64_t now = clock_ns();

    if (account_owner == 0 || account_owner == geteuid())
        return true;
    if (account->since == 0 || now - account->since > ACCOUNT_NS)
        *account = (struct account){.since = now};
    if (account->bytes > account_bytes)
        return false;
    account->bytes += strlen(text) + 64; /* of time, process and record */
    if (account->bytes > account_bytes)
        text_format(text, 1024,
                    "User %u causes too many lines; further ones are not logged for a minute",
                    (unsigned)account_owner);
    return true;
}

/* `record` may be NULL. Part of the text may come from other processes. */
static void write_line(const struct log_record *record, const char *format, va_list arguments)
{
    char text[1024];

    vsnprintf(text, sizeof(text), format, arguments);
    if (!charge(text))
        return;
    text_make_printable(text);
    log_with(record, "%s", text);
    if (to_stdout)
        log_line_to(STDOUT_FILENO, "%s", text);
}

void journal(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(NULL, format, arguments);
    va_end(arguments);
}

void journal_with(const struct log_record *record, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(record, format, arguments);
    va_end(arguments);
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0755) && errno != EEXIST)
        return -errno;
    return 0;
}

static bool is_own_server(const char *name)
{
    char own[32];

    text_format(own, sizeof(own), "uid_%u", (unsigned)geteuid());
    return !strcmp(name, own);
}

/* The folder of a server's log, and its path in there. */
static int server_paths(const char *directory, const char *name, char folder[PATH_MAX],
                        char path[PATH_MAX])
{
    int error = is_own_server(name) ? 0 : path_join(directory, name, folder, PATH_MAX);

    if (is_own_server(name) && !text_copy(folder, PATH_MAX, directory))
        error = -ENAMETOOLONG;
    return error ? error : path_join(folder, "server.log", path, PATH_MAX);
}

int journal_server_path(const char *directory, const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];

    return server_paths(directory, name, folder, path);
}

int journal_append_server(const char *directory, const char *name, uid_t reader, const char *text,
                          size_t size)
{
    char folder[PATH_MAX], path[PATH_MAX];
    int error = server_paths(directory, name, folder, path);

    if (!error && !is_own_server(name))
        error = make_folder(folder);
    return error ? error : append_file(path, reader, text, size);
}

bool journal_put_aside(const char *directory, const char *name, uint64_t most)
{
    char folder[PATH_MAX], path[PATH_MAX], old[PATH_MAX];
    struct stat status;
    int error = name ? server_paths(directory, name, folder, path)
                     : path_join(directory, "control.log", path, sizeof(path));

    if (error || lstat(path, &status) || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size <= most)
        return false;
    return text_format(old, sizeof(old), "%s.old", path) && !rename(path, old);
}
