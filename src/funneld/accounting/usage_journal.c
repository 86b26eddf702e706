/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_journal.h. */
#include "usage_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "append_file.h"
#include "clock.h"
#include "fd.h"
#include "journal.h"
#include "text.h"
#include "usage_sums.h"
#include "usage_totals.h"
#include "user_rate.h"

#define FILE_NAME "usage.jsonl"
#define FILE_BYTES_MAX (16 << 20)
#define FILES_KEPT 4

/* ---- the file ---- */

/* Each file gets the next number, and the oldest is removed. */
static void rotate(const char *path)
{
    char from[PATH_MAX + 4], to[PATH_MAX + 4];

    for (int i = FILES_KEPT; i > 0; i--) {
        text_format(to, sizeof(to), "%s.%d", path, i);
        if (i > 1)
            text_format(from, sizeof(from), "%s.%d", path, i - 1);
        else
            text_copy(from, sizeof(from), path);
        rename(from, to);
    }
}

static int append_line(const struct daemon *daemon, struct evbuffer *line)
{
    char path[PATH_MAX];
    struct stat status;
    int error = path_join(daemon->paths.log, FILE_NAME, path, sizeof(path));

    if (error)
        return error;
    if (!lstat(path, &status) && S_ISREG(status.st_mode) && status.st_size >= FILE_BYTES_MAX)
        rotate(path);
    return append_file(path, geteuid(), evbuffer_pullup(line, -1), evbuffer_get_length(line));
}

static bool is_failing;
static unsigned lost; /* clients that are in no line and no sum */

/* Said when it begins, and when it is over. */
static int append_and_report(void *context, struct evbuffer *line)
{
    const struct daemon *daemon = context;
    int error = append_line(daemon, line);

    if (error && !is_failing)
        journal("The use of a client cannot be written to " FILE_NAME " (%s), and waits",
                strerror(-error));
    if (!error && is_failing)
        journal(FILE_NAME " is written again");
    if (!error && lost) {
        journal("The use of %u client%s is missing in " FILE_NAME, lost, lost == 1 ? "" : "s");
        lost = 0;
    }
    is_failing = error != 0;
    return error;
}

/* ---- what waits for the disk ---- */

#define WAITING_BYTES_MAX (4u << 20)

struct waiting_line {
    struct list link;
    struct evbuffer *text;
};

static struct list waiting = {&waiting, &waiting};
static size_t waiting_bytes;

static void waiting_line_free(struct waiting_line *line)
{
    list_remove(&line->link);
    waiting_bytes -= evbuffer_get_length(line->text);
    evbuffer_free(line->text);
    free(line);
}

/* Whether it has taken the text over. */
static bool wait_for_disk(struct evbuffer *text)
{
    size_t size = evbuffer_get_length(text);
    bool fits = waiting_bytes + size <= WAITING_BYTES_MAX;
    struct waiting_line *line = fits ? calloc(1, sizeof(*line)) : NULL;

    if (!line)
        return false;
    line->text = evbuffer_new();
    if (!line->text || evbuffer_add_buffer(line->text, text)) {
        if (line->text)
            evbuffer_free(line->text);
        free(line);
        return false;
    }
    waiting_bytes += size;
    list_append(&waiting, &line->link);
    return true;
}

/* Whether nothing waits any more. */
static bool write_waiting(const struct daemon *daemon)
{
    list_for_each_safe (struct waiting_line, line, &waiting, link) {
        if (append_and_report((void *)daemon, line->text))
            return false;
        waiting_line_free(line);
    }
    return true;
}

/* ---- the share of a user ---- */

/* So many lines at once, which are some 4 MiB, and in a week as many as all files have. The
 * daemon's own user, who is its operator, may have all. */
static bool take_share(uid_t owner)
{
    static struct user_rate lines = {.interval_ns = 6 * NS_PER_SEC, .burst = 5000};

    return owner == 0 || owner == geteuid() || user_rate_take(&lines, owner, clock_ns());
}

/* ---- clients ---- */

static void add_to_totals(const char *server, const struct server_identity *who,
                          const struct server_client_gone *gone)
{
    struct usage_total *total = usage_totals_find(usage_totals(), server, who->uid, who->group);

    total->clients++;
    total->failed += gone->status != 0;
    usage_add(&total->usage, &gone->usage);
}

/* Lines keep their order: none is written before those that wait. */
static bool write_now(const struct daemon *daemon, struct evbuffer *text)
{
    return write_waiting(daemon) && !append_and_report((void *)daemon, text);
}

static bool add_line(const struct daemon *daemon, const struct usage_line *line)
{
    struct evbuffer *text = evbuffer_new();

    if (!text)
        return false;
    usage_line_add(text, line);
    bool added = take_share(line->who->owner) && (write_now(daemon, text) || wait_for_disk(text));
    evbuffer_free(text);
    return added;
}

void usage_journal_add(const struct daemon *daemon, const char *server,
                       const struct server_ready *ready, const struct server_identity *who,
                       const struct server_client_gone *gone, int64_t ended)
{
    const struct usage_line line = {server, ready, who, gone, ended, 1, gone->status != 0};

    add_to_totals(server, who, gone);
    if (!add_line(daemon, &line) && !usage_sums_add(&line))
        lost++;
}

/* ---- after a daemon that was killed ---- */

#define TAIL_MAX (64u << 10) /* far more than a line takes */

/* The end of the file, with a NUL behind it; NULL when there is none. Its size is the caller's to
 * know, and the text to free. */
static char *read_end(int fd, size_t *ret_size, off_t *ret_at)
{
    off_t end = lseek(fd, 0, SEEK_END);
    size_t size = end > (off_t)TAIL_MAX ? TAIL_MAX : end > 0 ? (size_t)end : 0;
    char *text = malloc(size + 1);

    if (!text)
        return NULL;
    *ret_at = end - (off_t)size;
    *ret_size = size;
    text[size] = '\0';
    if (size && !pread_all(fd, text, size, *ret_at))
        return text;
    free(text);
    return NULL;
}

static int open_file(const struct daemon *daemon)
{
    char path[PATH_MAX];

    return path_join(daemon->paths.log, FILE_NAME, path, sizeof(path))
               ? -1
               : open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

void usage_journal_mend(const struct daemon *daemon)
{
    _cleanup_fd_ int fd = open_file(daemon);
    size_t size;
    off_t at;
    char *text = fd < 0 ? NULL : read_end(fd, &size, &at);

    if (!text)
        return;
    const char *newline = memrchr(text, '\n', size);
    size_t whole = newline ? (size_t)(newline - text) + 1 : 0;
    if (whole < size && (newline || at == 0) && ftruncate(fd, at + (off_t)whole))
        journal("Half a line at the end of " FILE_NAME " cannot be taken back: %s",
                strerror(errno));
    free(text);
}

static bool ends_with(const struct daemon *daemon, struct evbuffer *line)
{
    _cleanup_fd_ int fd = open_file(daemon);
    size_t size = 0, length = evbuffer_get_length(line);
    off_t at;
    char *text = fd < 0 ? NULL : read_end(fd, &size, &at);
    bool ends = text && length && size >= length &&
                !memcmp(text + size - length, evbuffer_pullup(line, -1), length);

    free(text);
    return ends;
}

bool usage_journal_has(const struct daemon *daemon, const char *server,
                       const struct server_ready *ready, const struct server_identity *who,
                       const struct server_client_gone *gone, int64_t ended)
{
    const struct usage_line line = {server, ready, who, gone, ended, 1, gone->status != 0};
    struct evbuffer *text = evbuffer_new();

    if (!text)
        return false;
    usage_line_add(text, &line);
    bool has = ends_with(daemon, text);
    evbuffer_free(text);
    return has;
}

void usage_journal_write_rest(const struct daemon *daemon)
{
    if (write_waiting(daemon))
        usage_sums_write(false, append_and_report, (void *)daemon);
}

bool usage_journal_waits(void)
{
    return !list_empty(&waiting);
}

void usage_journal_close(const struct daemon *daemon)
{
    write_waiting(daemon);
    list_for_each_safe (struct waiting_line, line, &waiting, link) {
        waiting_line_free(line);
        lost++;
    }
    lost += usage_sums_write(true, append_and_report, (void *)daemon);
    if (lost)
        journal("The daemon ends, and the use of %u client%s is missing in " FILE_NAME, lost,
                lost == 1 ? "" : "s");
}
