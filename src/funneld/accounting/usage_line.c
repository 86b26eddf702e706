/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_line.h. */
#include "usage_line.h"

#include <stdbool.h>
#include <string.h>

#include "gpu_uuid.h"
#include "json_text.h"
#include "text.h"
#include "user_name.h"

static void add_device(struct evbuffer *line, const struct server_ready *ready,
                       const struct server_client_gone *gone, unsigned device)
{
    char uuid[GPU_UUID_TEXT];

    device_uuid_text(&ready->devices[device], uuid);
    evbuffer_add_printf(line, "{\"ordinal\":%u,\"uuid\":\"%s\"", device, uuid);
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

static void add_text(struct evbuffer *out, const char *name, const char *text, size_t size)
{
    evbuffer_add_printf(out, ",\"%s\":", name);
    json_text_add(out, text, size);
}

/* Nothing of one client alone stands in a line of several. */
static void add_program(struct evbuffer *out, const struct usage_line *line)
{
    const struct server_identity *who = line->who;
    char programs[48];

    text_format(programs, sizeof(programs), "(%u programs)", line->clients);
    if (line->clients > 1)
        add_text(out, "command", programs, sizeof(programs));
    else
        add_text(out, "command", who->command, sizeof(who->command));
    add_text(out, "group", line->clients > 1 ? "" : who->group, sizeof(who->group));
    add_text(out, "namespace", line->clients > 1 ? "" : who->space, sizeof(who->space));
}

static void add_identity(struct evbuffer *out, const struct usage_line *line)
{
    bool one = line->clients == 1;
    const char *name = user_name(line->who->uid);

    evbuffer_add_printf(out, "{\"since\":%lld,\"ended\":%lld,\"clients\":%u,\"failed\":%u",
                        (long long)line->who->since, (long long)line->ended, line->clients,
                        line->failed);
    evbuffer_add_printf(out, ",\"status\":%d,\"pid\":%d,\"id\":%u,\"uid\":%u",
                        one ? line->gone->status : 0, one ? line->who->pid : 0,
                        one ? line->gone->id : 0, line->who->uid);
    add_text(out, "user", name, strlen(name));
    add_text(out, "server_name", line->server, strlen(line->server));
    add_program(out, line);
}

static void add_usage(struct evbuffer *line, const struct server_usage *usage)
{
    evbuffer_add_printf(
        line,
        ",\"shared_seconds\":%.6f,\"copy_seconds\":%.6f,\"queued_seconds\":%.6f,"
        "\"mean_wait_seconds\":%.9f,\"launches\":%llu,\"copies\":%llu,"
        "\"copied_to_device_bytes\":%llu,\"copied_from_device_bytes\":%llu,"
        "\"copied_within_bytes\":%llu,\"stalls\":%llu,\"stalled_seconds\":%.3f"
        ",\"evictions\":%llu,\"swapped_out_bytes\":%llu,"
        "\"swapped_in_bytes\":%llu",
        (double)usage->shared_ns / 1e9, (double)usage->copy_ns / 1e9,
        (double)usage->queued_ns / 1e9, (double)usage->wait_ns / 1e9,
        (unsigned long long)usage->launches, (unsigned long long)usage->copies,
        (unsigned long long)usage->copied_up, (unsigned long long)usage->copied_down,
        (unsigned long long)usage->copied_within, (unsigned long long)usage->stalls,
        (double)usage->stalled_ms / 1e3, (unsigned long long)usage->evictions,
        (unsigned long long)usage->swapped_out, (unsigned long long)usage->swapped_in);
}

void usage_line_add(struct evbuffer *out, const struct usage_line *line)
{
    add_identity(out, line);
    add_usage(out, &line->gone->usage);
    add_devices(out, line->ready, line->gone);
    evbuffer_add(out, "}\n", 2);
}
