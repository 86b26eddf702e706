/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_totals.h. */
#include "usage_totals.h"

#include <string.h>

#include "text.h"

static struct usage_totals ended;

struct usage_totals *usage_totals(void)
{
    return &ended;
}

static bool fits(const struct usage_total *total, const char *server, uid_t uid, const char *group)
{
    return total->uid == uid && !strcmp(total->server, server) && !strcmp(total->group, group);
}

struct usage_total *usage_totals_find(struct usage_totals *totals, const char *server, uid_t uid,
                                      const char group[HELLO_GROUP_MAX])
{
    char own[HELLO_GROUP_MAX] = "";

    memcpy(own, group, sizeof(own) - 1);
    for (unsigned i = 0; i < totals->count; i++)
        if (fits(&totals->total[i], server, uid, own))
            return &totals->total[i];
    bool is_last = totals->count >= USAGE_TOTALS_MAX - 1;
    struct usage_total *total = &totals->total[is_last ? USAGE_TOTALS_MAX - 1 : totals->count];

    totals->count = is_last ? USAGE_TOTALS_MAX : totals->count + 1;
    total->uid = is_last ? 0 : uid;
    text_copy(total->server, sizeof(total->server), is_last ? "(others)" : server);
    text_copy(total->group, sizeof(total->group), is_last ? "(others)" : own);
    return total;
}

void usage_add(struct server_usage *sum, const struct server_usage *usage)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        sum->gpu_ns[i] += usage->gpu_ns[i];
        sum->sm_ns[i] += usage->sm_ns[i];
    }
    sum->shared_ns += usage->shared_ns;
    sum->copy_ns += usage->copy_ns;
    sum->queued_ns += usage->queued_ns;
    sum->launches += usage->launches;
    sum->copies += usage->copies;
    sum->copied_up += usage->copied_up;
    sum->copied_down += usage->copied_down;
    sum->copied_within += usage->copied_within;
    sum->stalls += usage->stalls;
    sum->stalled_ms += usage->stalled_ms;
}
