/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature, memacct and context-share of MPS v3. Servers always account for the memory of their
 * clients, so that feature is there and stays on; context-share is not there.
 */
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "look.h"
#include "text.h"

static void answer(struct console *console, int status, const char *sentence)
{
    if (*sentence)
        console_print(console, "%s", sentence);
    console_done(console, status);
}

/* ---- feature ---- */

static const char *const feature_titles[] = {"feature", "state", "module", "covers", NULL};

static const char *const features[][4] = {
    {"memacct", "enabled (default)", "memacct", "device memory of each client"},
    {"context-share", "disabled (default)", "context-share", "nothing: it is not supported"},
};

static void add_features(struct look *look)
{
    const char *wanted = look->values.feature;

    for (unsigned i = 0; i < sizeof(features) / sizeof(*features); i++)
        if (!*wanted || !strcmp(wanted, features[i][0]))
            table_add(&look->table, features[i]);
}

void run_feature_describe(struct console *console, const struct grammar_values *values)
{
    static const struct look_subject subject = {feature_titles, 4, NULL, add_features};

    look_show(console, values, &subject);
}

static bool is_memacct(const struct grammar_values *values)
{
    return !strcmp(values->feature, "memacct");
}

void run_feature_enable(struct console *console, const struct grammar_values *values)
{
    if (is_memacct(values))
        answer(console, COMMAND_OK, "");
    else
        answer(console, COMMAND_FAILED, "context-share is not supported");
}

void run_feature_disable(struct console *console, const struct grammar_values *values)
{
    if (is_memacct(values))
        answer(console, COMMAND_FAILED, "Servers always account for the memory of their clients");
    else
        answer(console, COMMAND_OK, "");
}

/* ---- memacct ---- */

static const char *const memory_titles[] = {"server",       "device",      "pid",
                                            "namespace",    "memory-used", "memory-peak",
                                            "memory-limit", "cmd",         NULL};

/* For people in binary units, for programs in bytes. */
static void format_memory(const struct look *look, uint64_t bytes, char cell[32])
{
    if (look->values.format != TABLE_PLAIN)
        text_format(cell, 32, "%llu", (unsigned long long)bytes);
    else if (bytes >= 10ull << 30)
        text_format(cell, 32, "%.1fG", (double)bytes / (1ull << 30));
    else
        text_format(cell, 32, "%.1fM", (double)bytes / (1ull << 20));
}

static void add_memory(struct look *look, const struct survey_part *part, unsigned device,
                       const struct server_status_row *row)
{
    uint64_t limit = row->limits.memory_limit[device];
    char ordinal[16], pid[16], used[32], peak[32], most[32] = "-";

    text_format(ordinal, sizeof(ordinal), "%u", device);
    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    format_memory(look, row->memory_used[device], used);
    format_memory(look, row->memory_peak[device], peak);
    if (limit)
        format_memory(look, limit, most);
    table_add(&look->table, (const char *[]){part->server.name, ordinal, pid, row->identity.space,
                                             used, peak, most, row->identity.command});
}

/* Beyond what clients hold this counts contexts, pools, and who uses the device besides us. */
static void add_device(struct look *look, const struct survey_part *part, unsigned device)
{
    uint64_t total = part->server.devices[device].memory_total;
    uint64_t unused = part->server.memory_free[device];
    char ordinal[16], used[32], most[32];

    text_format(ordinal, sizeof(ordinal), "%u", device);
    format_memory(look, unused < total ? total - unused : 0, used);
    format_memory(look, total, most);
    table_add(&look->table, (const char *[]){part->server.name, ordinal, "-", "-", used, "-", most,
                                             "(the whole device)"});
}

static void fill_memory(struct look *look, const struct survey_part *part)
{
    for (unsigned device = 0; device < part->server.device_count; device++) {
        for (unsigned i = 0; i < part->client_count; i++)
            if (part->clients[i].device_mask & (1ull << device))
                add_memory(look, part, device, &part->clients[i]);
        if (part->server.responding)
            add_device(look, part, device);
    }
}

void run_memacct_list(struct console *console, const struct grammar_values *values)
{
    static const struct look_subject subject = {memory_titles, 8, fill_memory, NULL};

    look_show(console, values, &subject);
}

static const char *const setting_titles[] = {"key", "value", NULL};

static void add_settings(struct look *look)
{
    const struct daemon *daemon = look->console->daemon;
    char value[32];

    text_format(value, sizeof(value), "%s%s", daemon->audits ? "true" : "false",
                daemon->audits_by_order ? "" : " (default)");
    table_add(&look->table, (const char *[]){"audit_log", value});
}

void run_memacct_describe(struct console *console, const struct grammar_values *values)
{
    static const struct look_subject subject = {setting_titles, 2, NULL, add_settings};

    look_show(console, values, &subject);
}

void run_memacct_set(struct console *console, const struct grammar_values *values)
{
    console->daemon->audits = values->yes;
    console->daemon->audits_by_order = true;
    answer(console, COMMAND_OK, "");
}

/* ---- context-share ---- */

void run_context_share_describe(struct console *console, const struct grammar_values *values)
{
    answer(console, COMMAND_FAILED,
           "context-share is not supported: all clients of a server share its context anyway");
}

void run_context_share_set(struct console *console, const struct grammar_values *values)
{
    run_context_share_describe(console, values);
}
