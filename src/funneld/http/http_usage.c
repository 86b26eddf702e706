/* SPDX-License-Identifier: Apache-2.0 */
/* See http_usage.h. */
#include "http_usage.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"
#include "fd.h"
#include "http_parse.h"
#include "list.h"
#include "paths.h"
#include "text.h"

#define REPORTS_MAX 4u /* at a time */
#define REPORT_SECONDS 60
#define REPORT_BYTES_MAX (8u << 20)
#define DAYS_MAX 3660u
#define KEYS_TEXT 64

/* A command that runs, and the request that it answers. The daemon reaps its process. */
struct usage_report {
    struct list link;
    struct http_request *request;
    struct evbuffer *text;
    struct event *readable, *deadline;
    int fd;
    pid_t pid;
    bool is_csv;
};

static struct list reports = {&reports, &reports};
static unsigned count;

static void usage_report_free(struct usage_report *report)
{
    list_remove(&report->link);
    count--;
    if (report->readable)
        event_free(report->readable);
    if (report->deadline)
        event_free(report->deadline);
    if (report->text)
        evbuffer_free(report->text);
    fd_close(&report->fd);
    free(report);
}

/* A command that fails prints nothing. */
static void finish_report(struct usage_report *report, bool is_whole)
{
    bool is_answer = is_whole && evbuffer_get_length(report->text) > 0;
    const char *type = !is_answer       ? "text/plain"
                       : report->is_csv ? "text/csv; charset=utf-8"
                                        : "application/json";

    http_answer(report->request, is_answer ? 200 : 503, type, is_answer ? report->text : NULL);
    usage_report_free(report);
}

static void give_up(struct usage_report *report)
{
    kill(report->pid, SIGKILL);
    finish_report(report, false);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct usage_report *report = context;
    int got = evbuffer_read(report->text, fd, 64 << 10);

    if (got == 0)
        finish_report(report, true);
    else if (got < 0 || evbuffer_get_length(report->text) > REPORT_BYTES_MAX)
        give_up(report);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    give_up(context);
}

/* ---- the command ---- */

_Noreturn static void run_command(const struct daemon *daemon, const char *program, const char *by,
                                  const char *since, bool is_csv, int out)
{
    const char *arguments[] = {
        "funnel", "usage", "--by", by, "--since", since, is_csv ? "--csv" : "--json", NULL};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        setenv("CUDA_MPS_PIPE_DIRECTORY", daemon->paths.pipe, 1) ||
        setenv("CUDA_MPS_LOG_DIRECTORY", daemon->paths.log, 1))
        _exit(127);
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
    execv(program, (char **)arguments);
    _exit(127);
}

/* 0 or -1. */
static int start_command(struct usage_report *report, const char *by, const char *since)
{
    const struct daemon *daemon = report->request->context;
    char program[PATH_MAX];
    int ends[2];

    if (path_of_sibling("bin/funnel", program, sizeof(program)) || pipe2(ends, O_CLOEXEC))
        return -1;
    report->fd = ends[0];
    report->pid = fork();
    if (report->pid == 0)
        run_command(daemon, program, by, since, report->is_csv, ends[1]);
    close(ends[1]);
    return report->pid < 0 ? -1 : 0;
}

static int watch_command(struct usage_report *report)
{
    const struct timeval limit = {.tv_sec = REPORT_SECONDS};
    struct event_base *base = ((const struct daemon *)report->request->context)->base;

    report->text = evbuffer_new();
    report->readable = event_new(base, report->fd, EV_READ | EV_PERSIST, on_readable, report);
    report->deadline = evtimer_new(base, on_deadline, report);
    return report->text && report->readable && report->deadline &&
                   !event_add(report->readable, NULL) && !event_add(report->deadline, &limit)
               ? 0
               : -1;
}

/* ---- the question ---- */

/* The bit of a key, 0 for none. */
static unsigned key_bit(const char *name, size_t length)
{
    static const char *const keys[] = {"user", "group", "server", "namespace", "day"};

    for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strlen(keys[i]) == length && !memcmp(keys[i], name, length))
            return 1u << i;
    return 0;
}

/* Only what the command takes, each key once, so that it does not fail. */
static bool are_keys(const char *names)
{
    unsigned seen = 0;

    for (;; names++) {
        size_t length = strcspn(names, ",");
        unsigned bit = key_bit(names, length);

        if (!bit || seen & bit)
            return false;
        seen |= bit;
        names += length;
        if (!*names)
            return true;
    }
}

void http_usage_answer(struct http_request *request)
{
    char by[KEYS_TEXT], since[16];
    uint64_t days, csv = 0;

    if (!http_query_text(request, "by", by, sizeof(by)) || !are_keys(by) ||
        http_query_number(request, "days", &days) || !days || days > DAYS_MAX ||
        (http_query_has(request, "csv") && (http_query_number(request, "csv", &csv) || csv > 1))) {
        http_answer(request, 400, "text/plain", NULL);
        return;
    }
    struct usage_report *report = count < REPORTS_MAX ? calloc(1, sizeof(*report)) : NULL;
    if (!report) {
        http_answer(request, 503, "text/plain", NULL);
        return;
    }
    *report = (struct usage_report){.request = request, .fd = -1, .is_csv = csv != 0};
    list_append(&reports, &report->link);
    count++;
    text_format(since, sizeof(since), "%ud", (unsigned)days);
    if (start_command(report, by, since))
        finish_report(report, false);
    else if (watch_command(report))
        give_up(report);
}

void http_usage_stop(void)
{
    list_for_each_safe (struct usage_report, report, &reports, link)
        give_up(report);
}
