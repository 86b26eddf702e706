/* SPDX-License-Identifier: Apache-2.0 */
/* See quota.h. */
#include "quota.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "grammar.h"
#include "log.h"
#include "text.h"

#define RANGES_MIN 1024u
#define RANGES_MAX (1u << 16)
#define WAITS 1024u

static const struct {
    const char *name;
    bool is_memory; /* "8G", not a plain number */
} rows[QUOTA_COUNT] = {
    [QUOTA_HOST_MEMORY] = {"host-memory", true},
    [QUOTA_RANGES] = {"ranges"},
    [QUOTA_WAITS] = {"waits"},
};

static uint64_t values[QUOTA_COUNT] = {UINT64_MAX, RANGES_MAX, WAITS};

static uint64_t default_ranges(void)
{
    struct rlimit limit;
    uint64_t ranges = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur / 8;

    if (ranges > RANGES_MAX)
        return RANGES_MAX;
    return ranges < RANGES_MIN ? RANGES_MIN : ranges;
}

static int change_one(char *item, uint64_t table[QUOTA_COUNT])
{
    char *value = strchr(item, '=');
    uint64_t number = 0;

    if (!value)
        return -EINVAL;
    *value++ = '\0';
    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        if (strcmp(rows[i].name, item))
            continue;
        int error =
            rows[i].is_memory ? grammar_memory(value, &number) : text_to_u64(value, &number);
        if (error || !number)
            return -EINVAL;
        table[i] = number;
        return 0;
    }
    return -EINVAL;
}

static int change(const char *changes, uint64_t table[QUOTA_COUNT])
{
    char text[512], *rest = NULL;

    if (!text_copy(text, sizeof(text), changes))
        return -EINVAL;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (!change_one(item, table))
            continue;
        log_line("FUNNEL_QUOTAS: \"%s\" is not a quota with a number", item);
        return -EINVAL;
    }
    return 0;
}

int quotas_init(const char *changes)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t table[QUOTA_COUNT] = {pages * page / 2, default_ranges(), WAITS};
    int error = changes ? change(changes, table) : 0;

    if (!error)
        memcpy(values, table, sizeof(values));
    return error;
}

uint64_t quota(enum quota which)
{
    return values[which];
}

const char *quota_name(enum quota which)
{
    return rows[which].name;
}
