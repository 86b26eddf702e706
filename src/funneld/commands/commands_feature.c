/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature, memacct and context-share of MPS v3. Servers always account for the memory of their
 * clients, so memacct is enabled and stays so; context-share is not supported.
 */
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "list_view.h"
#include "text.h"

/* ---- feature ---- */

static const char *const feature_titles[] = {"feature", "state", "module", "covers", NULL};

static const char *const features[][4] = {
    {"memacct", "enabled (default)", "memacct", "device memory of each client"},
    {"context-share", "disabled (default)", "context-share", "nothing: it is not supported"},
};

static void add_features(struct list_view *view)
{
    const char *wanted = view->values.feature;

    for (unsigned i = 0; i < sizeof(features) / sizeof(*features); i++)
        if (!*wanted || !strcmp(wanted, features[i][0]))
            table_add(&view->table, features[i]);
}

void run_feature_describe(struct console *console, const struct grammar_values *values)
{
    static const struct list_view_type type = {feature_titles, 4, NULL, add_features};

    list_view_show(console, values, &type);
}

static bool is_memacct(const struct grammar_values *values)
{
    return !strcmp(values->feature, "memacct");
}

void run_feature_enable(struct console *console, const struct grammar_values *values)
{
    if (is_memacct(values))
        console_answer(console, COMMAND_OK, "");
    else
        console_answer(console, COMMAND_FAILED, "context-share is not supported");
}

void run_feature_disable(struct console *console, const struct grammar_values *values)
{
    if (is_memacct(values))
        console_answer(console, COMMAND_FAILED,
                       "Servers always account for the memory of their clients");
    else
        console_answer(console, COMMAND_OK, "");
}

/* ---- memacct ---- */

static const char *const memory_titles[] = {"server",       "device",      "pid",
                                            "namespace",    "memory-used", "memory-peak",
                                            "memory-limit", "cmd",         NULL};

/* In binary units in a table, in bytes in comma-separated values. */
static void format_memory(const struct list_view *view, uint64_t bytes, char cell[32])
{
    if (view->values.format != TABLE_PLAIN)
        text_format(cell, 32, "%llu", (unsigned long long)bytes);
    else if (bytes >= 10ull << 30)
        text_format(cell, 32, "%.1fG", (double)bytes / (1ull << 30));
    else
        text_format(cell, 32, "%.1fM", (double)bytes / (1ull << 20));
}

static void add_memory(struct list_view *view, const struct status_report *report, unsigned device,
                       const struct server_status_row *row)
{
    uint64_t limit = row->limits.memory_limit[device];
    char ordinal[16], pid[16], used[32], peak[32], most[32] = "-";

    text_format(ordinal, sizeof(ordinal), "%u", device);
    text_format(pid, sizeof(pid), "%d", row->identity.pid);
    format_memory(view, row->memory_used[device], used);
    format_memory(view, row->memory_peak[device], peak);
    if (limit)
        format_memory(view, limit, most);
    table_add(&view->table, (const char *[]){report->server.name, ordinal, pid, row->identity.space,
                                             used, peak, most, row->identity.command});
}

/* Besides the memory of clients this includes contexts, pools, and other users of the device. */
static void add_device(struct list_view *view, const struct status_report *report, unsigned device)
{
    uint64_t total = report->server.devices[device].memory_total;
    uint64_t unused = report->server.memory_free[device];
    char ordinal[16], used[32], most[32];

    text_format(ordinal, sizeof(ordinal), "%u", device);
    format_memory(view, unused < total ? total - unused : 0, used);
    format_memory(view, total, most);
    table_add(&view->table, (const char *[]){report->server.name, ordinal, "-", "-", used, "-",
                                             most, "(the whole device)"});
}

static void fill_memory(struct list_view *view, const struct status_report *report)
{
    for (unsigned device = 0; device < report->server.device_count; device++) {
        for (unsigned i = 0; i < report->client_count; i++)
            if (report->clients[i].device_mask & (1ull << device) &&
                console_may_see_client(view->console, report->clients[i].identity.uid))
                add_memory(view, report, device, &report->clients[i]);
        if (report->server.responding)
            add_device(view, report, device);
    }
}

void run_memacct_list(struct console *console, const struct grammar_values *values)
{
    static const struct list_view_type type = {memory_titles, 8, fill_memory, NULL};

    list_view_show(console, values, &type);
}

static const char *const setting_titles[] = {"key", "value", NULL};

static void add_settings(struct list_view *view)
{
    const struct daemon *daemon = view->console->daemon;
    char value[32];

    text_format(value, sizeof(value), "%s%s", daemon->audits ? "true" : "false",
                daemon->audits_by_order ? "" : " (default)");
    table_add(&view->table, (const char *[]){"audit_log", value});
}

void run_memacct_describe(struct console *console, const struct grammar_values *values)
{
    static const struct list_view_type type = {setting_titles, 2, NULL, add_settings};

    list_view_show(console, values, &type);
}

void run_memacct_set(struct console *console, const struct grammar_values *values)
{
    console->daemon->audits = values->yes;
    console->daemon->audits_by_order = true;
    console_answer(console, COMMAND_OK, "");
}

/* ---- context-share ---- */

void run_context_share_describe(struct console *console, const struct grammar_values *values)
{
    console_answer(
        console, COMMAND_FAILED,
        "context-share is not supported: all clients of a server share its context anyway");
}

void run_context_share_set(struct console *console, const struct grammar_values *values)
{
    run_context_share_describe(console, values);
}
