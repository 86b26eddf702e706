/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_journal.h. */
#include "usage_journal.h"

#include <event2/buffer.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "append_file.h"
#include "journal.h"
#include "json_text.h"
#include "text.h"
#include "usage_totals.h"
#include "user_name.h"

#define FILE_NAME "usage.jsonl"
#define FILE_BYTES_MAX (16 << 20)
#define FILES_KEPT 4

static unsigned lost; /* lines, since the last one that could be written */

/* ---- a line ---- */

static void add_device(struct evbuffer *line, const struct server_ready *ready,
                       const struct server_client_gone *gone, unsigned device)
{
    const uint8_t *u = ready->devices[device].uuid;

    evbuffer_add_printf(line,
                        "{\"ordinal\":%u,\"uuid\":\"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-"
                        "%02x%02x-%02x%02x%02x%02x%02x%02x\"",
                        device, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
                        u[11], u[12], u[13], u[14], u[15]);
    evbuffer_add_printf(line, ",\"gpu_seconds\":%.6f,\"sm_seconds\":%.6f,\"memory_peak\":%llu}",
                        (double)gone->usage.gpu_ns[device] / 1e9,
                        (double)gone->usage.sm_ns[device] / 1e9,
                        (unsigned long long)gone->memory_peak[device]);
}

static void add_devices(struct evbuffer *line, const struct server_ready *ready,
                        const struct server_client_gone *gone)
{
    const char *between = "";

    evbuffer_add_printf(line, ",\"devices\":[");
    for (unsigned i = 0; i < ready->device_count; i++) {
        if (!gone->usage.gpu_ns[i] && !gone->memory_peak[i])
            continue;
        evbuffer_add_printf(line, "%s", between);
        add_device(line, ready, gone, i);
        between = ",";
    }
    evbuffer_add_printf(line, "]");
}

static void add_identity(struct evbuffer *line, const char *server,
                         const struct server_identity *who, const struct server_client_gone *gone)
{
    const char *name = user_name(who->uid);

    evbuffer_add_printf(line, "{\"since\":%lld,\"ended\":%lld,\"status\":%d,\"pid\":%d,\"id\":%u",
                        (long long)who->since, (long long)time(NULL), gone->status, who->pid,
                        gone->id);
    evbuffer_add_printf(line, ",\"uid\":%u,\"user\":", who->uid);
    json_text_add(line, name, strlen(name));
    evbuffer_add_printf(line, ",\"group\":");
    json_text_add(line, who->group, sizeof(who->group));
    evbuffer_add_printf(line, ",\"server_name\":");
    json_text_add(line, server, strlen(server));
    evbuffer_add_printf(line, ",\"namespace\":");
    json_text_add(line, who->space, sizeof(who->space));
    evbuffer_add_printf(line, ",\"command\":");
    json_text_add(line, who->command, sizeof(who->command));
}

static void add_usage(struct evbuffer *line, const struct server_usage *usage)
{
    evbuffer_add_printf(line,
                        ",\"shared_seconds\":%.6f,\"copy_seconds\":%.6f,\"queued_seconds\":%.6f,"
                        "\"mean_wait_seconds\":%.9f,\"launches\":%llu,\"copies\":%llu,"
                        "\"copied_to_device_bytes\":%llu,\"copied_from_device_bytes\":%llu,"
                        "\"copied_within_bytes\":%llu,\"stalls\":%llu,\"stalled_seconds\":%.3f",
                        (double)usage->shared_ns / 1e9, (double)usage->copy_ns / 1e9,
                        (double)usage->queued_ns / 1e9, (double)usage->wait_ns / 1e9,
                        (unsigned long long)usage->launches, (unsigned long long)usage->copies,
                        (unsigned long long)usage->copied_up,
                        (unsigned long long)usage->copied_down,
                        (unsigned long long)usage->copied_within, (unsigned long long)usage->stalls,
                        (double)usage->stalled_ms / 1e3);
}

/* ---- the file ---- */

/* What comes after the newest name is moved one further; the oldest goes. */
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

static int append(const char *directory, struct evbuffer *line)
{
    char path[PATH_MAX];
    struct stat status;
    int error = path_join(directory, FILE_NAME, path, sizeof(path));

    if (error)
        return error;
    if (!lstat(path, &status) && S_ISREG(status.st_mode) && status.st_size >= FILE_BYTES_MAX)
        rotate(path);
    return append_file(path, geteuid(), evbuffer_pullup(line, -1), evbuffer_get_length(line));
}

/* Said when it begins, and when it is over. */
static void report(int error)
{
    if (error && !lost++)
        journal("The use of a client cannot be written to " FILE_NAME ": %s", strerror(-error));
    if (!error && lost) {
        journal("The use of %u client%s is missing in " FILE_NAME, lost, lost == 1 ? "" : "s");
        lost = 0;
    }
}

static void add_to_totals(const char *server, const struct server_identity *who,
                          const struct server_client_gone *gone)
{
    struct usage_total *total = usage_totals_find(usage_totals(), server, who->uid, who->group);

    total->clients++;
    total->failed += gone->status != 0;
    usage_add(&total->usage, &gone->usage);
}

void usage_journal_add(const struct daemon *daemon, const char *server,
                       const struct server_ready *ready, const struct server_identity *who,
                       const struct server_client_gone *gone)
{
    struct evbuffer *line = evbuffer_new();

    add_to_totals(server, who, gone);
    if (!line)
        return;
    add_identity(line, server, who, gone);
    add_usage(line, &gone->usage);
    add_devices(line, ready, gone);
    evbuffer_add(line, "}\n", 2);
    report(append(daemon->paths.log, line));
    evbuffer_free(line);
}
