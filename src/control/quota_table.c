/* SPDX-License-Identifier: Apache-2.0 */
/* See quota_table.h. */
#include "quota_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptor_limit.h"
#include "grammar.h"
#include "text.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)

#define RANGES_MIN 1024u
#define RANGES_MAX (1u << 16)
#define DAY_S (24u * 3600)

const struct quota_row quota_rows[QUOTA_COUNT] = {
    [QUOTA_HOST_MEMORY] = {"host-memory", QUOTA_BYTES, 16 * MIB, 1024 * TIB, 0,
                           "page-locked memory"},
    [QUOTA_RANGES] = {"ranges", QUOTA_NUMBER, 16, 1u << 20, 0,
                      "granules, mappings and variables, each perhaps a descriptor"},
    [QUOTA_MODULES] = {"modules", QUOTA_NUMBER, 16, 1u << 14, 1u << 14, "loaded modules"},
    [QUOTA_STREAMS] = {"streams", QUOTA_NUMBER, 4, 4096, 4096, "streams"},
    [QUOTA_EVENTS] = {"events", QUOTA_NUMBER, 16, 1u << 17, 1u << 17, "events"},
    [QUOTA_ARRAYS] = {"arrays", QUOTA_NUMBER, 1, 1u << 16, 1u << 16, "arrays"},
    [QUOTA_GRAPH_MEMORY] = {"graph-memory", QUOTA_BYTES, MIB, 64 * GIB, GIB,
                            "launchable graphs in the server's memory"},
    [QUOTA_WAITS] = {"waits", QUOTA_NUMBER, 1, 1u << 20, 1024, "waits for values that go on"},
    [QUOTA_KEPT_MEMORY] = {"kept-memory", QUOTA_PERCENT_OF_LIMIT, 0, 1000, 100,
                           "device memory that comes with a descriptor, all in all"},
    [QUOTA_WAIT_SECONDS] = {"wait-seconds", QUOTA_SECONDS, 1, DAY_S, 60,
                            "how long a wait keeps calls of others away"},
    [QUOTA_LOG] = {"log", QUOTA_BYTES_A_MINUTE, KIB, GIB, 32 * KIB,
                   "lines about a client in server.log"},
    [QUOTA_ATTACHES] = {"attaches", QUOTA_A_SECOND, 1, 100000, 50, "programs that connect"},
    [QUOTA_CONNECTIONS] = {"connections", QUOTA_NUMBER, 1, 1u << 16, 512,
                           "connections that wait at the daemon"},
    [QUOTA_SLOTS] = {"slots", QUOTA_NUMBER, 1, 1u << 16, 256,
                     "clients in a server of several users"},
    [QUOTA_CONTROL_LOG] = {"control-log", QUOTA_BYTES_A_MINUTE, KIB, GIB, 256 * KIB,
                           "lines that a user causes in control.log"},
    [QUOTA_USER_SERVERS] = {"user-servers", QUOTA_NUMBER, 1, 4096, 8, "server processes of a user"},
    [QUOTA_LOG_FILE] = {"log-file", QUOTA_BYTES, 64 * KIB, TIB, 64 * MIB,
                        "control.log and each server.log; an old one is kept beside it"},
    [QUOTA_SWAP_MEMORY] = {"swap-memory", QUOTA_BYTES, 0, 1024 * TIB, 0,
                           "a server's host memory for suspended programs"},
    [QUOTA_SWAP_AHEAD] = {"swap-ahead", QUOTA_BYTES, 0, 1024 * TIB, 0,
                          "of it, what is page-locked ahead while a device is nearly full"},
    [QUOTA_STAY_SECONDS] = {"stay-seconds", QUOTA_SECONDS, 1, DAY_S, 60,
                            "how long memory stays on the device while others wait for room"},
    [QUOTA_ROOM_SECONDS] = {"room-seconds", QUOTA_SECONDS, 0, DAY_S, 90,
                            "how long an allocation waits for others to make room"},
    [QUOTA_SERVERS] = {"servers", QUOTA_NUMBER, 1, 4096, 32, "server processes"},
};

/* An eighth, so that one client leaves descriptors to others; a server with few gives a quarter. */
static uint64_t default_ranges(void)
{
    uint64_t limit = descriptor_limit();
    uint64_t ranges = limit / 4 < RANGES_MIN ? limit / 4 : RANGES_MIN;

    if (limit / 8 > ranges)
        ranges = limit / 8 < RANGES_MAX ? limit / 8 : RANGES_MAX;
    return ranges < quota_rows[QUOTA_RANGES].least ? quota_rows[QUOTA_RANGES].least : ranges;
}

static uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t default_of(enum quota which)
{
    if (which == QUOTA_HOST_MEMORY || which == QUOTA_SWAP_MEMORY)
        return machine_memory() / 2;
    if (which == QUOTA_SWAP_AHEAD)
        return machine_memory() / 8;
    return which == QUOTA_RANGES ? default_ranges() : quota_rows[which].initial;
}

void quotas_init(struct quotas *quotas)
{
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        quotas->value[i] = default_of(i);
}

static bool is_of_bytes(enum quota_unit unit)
{
    return unit == QUOTA_BYTES || unit == QUOTA_BYTES_A_MINUTE;
}

static int parse_value(enum quota which, const char *text, uint64_t *ret_value)
{
    const struct quota_row *row = &quota_rows[which];
    uint64_t value = 0;

    if (!strcmp(text, "default")) {
        *ret_value = default_of(which);
        return 0;
    }
    int error = is_of_bytes(row->unit) && strcmp(text, "0") ? grammar_size(text, &value)
                                                            : text_to_u64(text, &value);
    if (error || value < row->least || value > row->most)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

static void explain_value(const struct quota_row *row, const char *value, char *reason)
{
    char least[QUOTA_TEXT_MAX], most[QUOTA_TEXT_MAX];

    quota_value_text(row->unit, row->least, least);
    quota_value_text(row->unit, row->most, most);
    text_format(reason, QUOTA_REASON_MAX, "The quota %s is %s to %s (%s), not \"%.64s\"", row->name,
                least, most, quota_unit_name(row->unit), value);
}

static int change_one(struct quotas *quotas, char *item, char *reason)
{
    char *value = strchr(item, '=');

    if (value)
        *value++ = '\0';
    for (unsigned i = 0; value && i < QUOTA_COUNT; i++) {
        if (strcmp(quota_rows[i].name, item))
            continue;
        if (!parse_value(i, value, &quotas->value[i]))
            return 0;
        explain_value(&quota_rows[i], value, reason);
        return -EINVAL;
    }
    text_format(reason, QUOTA_REASON_MAX,
                value ? "There is no quota \"%.64s\"; funnel limits shows them"
                      : "\"%.64s\" is not NAME=VALUE; funnel limits shows the quotas",
                item);
    return -EINVAL;
}

int quotas_change(struct quotas *quotas, const char *changes, char ret_reason[QUOTA_REASON_MAX])
{
    struct quotas changed = *quotas;
    char text[1024], *rest = NULL;
    int error = 0;

    if (!text_copy(text, sizeof(text), changes)) {
        text_copy(ret_reason, QUOTA_REASON_MAX, "The list of quotas is too long");
        return -EINVAL;
    }
    for (char *item = strtok_r(text, ",", &rest); item && !error; item = strtok_r(NULL, ",", &rest))
        error = change_one(&changed, item, ret_reason);
    if (!error)
        *quotas = changed;
    return error;
}

const char *quota_owner(enum quota which)
{
    if (which < QUOTA_CLIENT_COUNT)
        return "client";
    return which < QUOTA_SERVERS ? "user" : "daemon";
}

const char *quota_unit_name(enum quota_unit unit)
{
    static const char *const names[] = {
        [QUOTA_NUMBER] = "number",
        [QUOTA_BYTES] = "bytes",
        [QUOTA_BYTES_A_MINUTE] = "bytes/min",
        [QUOTA_A_SECOND] = "a second",
        [QUOTA_SECONDS] = "seconds",
        [QUOTA_PERCENT_OF_LIMIT] = "% of limit",
    };

    return unit <= QUOTA_PERCENT_OF_LIMIT ? names[unit] : "number";
}

void quota_value_text(enum quota_unit unit, uint64_t value, char ret_text[QUOTA_TEXT_MAX])
{
    static const char units[] = "KMG";
    int shift = 0;

    while (is_of_bytes(unit) && shift < 3 && value && value % 1024 == 0) {
        value /= 1024;
        shift++;
    }
    if (shift)
        text_format(ret_text, QUOTA_TEXT_MAX, "%llu%c", (unsigned long long)value,
                    units[shift - 1]);
    else
        text_format(ret_text, QUOTA_TEXT_MAX, "%llu", (unsigned long long)value);
}
