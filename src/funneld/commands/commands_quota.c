/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit --quota: changes the table of quotas. What a client holds already stays its own; servers
 * count it against the new quota from then on.
 */
#include <string.h>

#include "command_protocol.h"
#include "commands.h"
#include "console.h"
#include "journal.h"
#include "server_process.h"

static void print_changed(struct console *console, const struct quotas *before)
{
    const struct quotas *now = &console->daemon->quotas;
    char text[QUOTA_TEXT_MAX];

    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        if (now->value[i] == before->value[i])
            continue;
        quota_value_text(quota_rows[i].unit, now->value[i], text);
        console_print(console, "The quota %s of a %s is now %s (%s)", quota_rows[i].name,
                      quota_owner(i), text, quota_unit_name(quota_rows[i].unit));
    }
}

void change_quotas(struct console *console, const struct grammar_values *values)
{
    struct quotas before = console->daemon->quotas;
    char reason[QUOTA_REASON_MAX];

    if (quotas_change(&console->daemon->quotas, values->changes, reason)) {
        console_print(console, "%s", reason);
        console_done(console, COMMAND_REJECTED);
        return;
    }
    journal_set_quota(console->daemon->quotas.value[QUOTA_CONTROL_LOG]);
    server_process_send_quotas_to_all(console->daemon);
    print_changed(console, &before);
    console_done(console, COMMAND_OK);
}
