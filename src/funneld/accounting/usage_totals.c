/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_totals.h. */
#include "usage_totals.h"

#include <string.h>

#include "text.h"
#include "user_owner.h"

#define OTHERS "(others)"

static struct usage_totals ended;

struct usage_totals *usage_totals(void)
{
    return &ended;
}

/* The one of these three, or NULL. */
static struct usage_total *find_total(struct usage_totals *totals, const char *server, uid_t uid,
                                      const char *group)
{
    for (unsigned i = 0; i < totals->count; i++) {
        struct usage_total *total = &totals->total[i];

        if (total->uid == uid && !strcmp(total->server, server) && !strcmp(total->group, group))
            return total;
    }
    return NULL;
}

static unsigned count_of(const struct usage_totals *totals, uid_t owner)
{
    unsigned count = 0;

    for (unsigned i = 0; i < totals->count; i++)
        count += totals->total[i].owner == owner;
    return count;
}

/* The last one is everyone's. */
static struct usage_total *add_total(struct usage_totals *totals, const char *server, uid_t uid,
                                     uid_t owner, const char *group)
{
    bool is_last = totals->count >= USAGE_TOTALS_MAX - 1;
    struct usage_total *total = &totals->total[is_last ? USAGE_TOTALS_MAX - 1 : totals->count];

    totals->count = is_last ? USAGE_TOTALS_MAX : totals->count + 1;
    total->uid = is_last ? 0 : uid;
    total->owner = is_last ? 0 : owner;
    text_copy(total->server, sizeof(total->server), is_last ? OTHERS : server);
    text_copy(total->group, sizeof(total->group), is_last ? OTHERS : group);
    return total;
}

struct usage_total *usage_totals_find(struct usage_totals *totals, const char *server, uid_t uid,
                                      const char group[HELLO_GROUP_MAX])
{
    char own[HELLO_GROUP_MAX] = "";
    struct usage_total *total;

    memcpy(own, group, sizeof(own) - 1);
    total = find_total(totals, server, uid, own);
    if (total)
        return total;
    uid_t owner = user_owner(uid);
    if (count_of(totals, owner) < USAGE_TOTALS_OF_OWNER_MAX)
        return add_total(totals, server, uid, owner, own);
    total = find_total(totals, OTHERS, owner, OTHERS);
    return total ? total : add_total(totals, OTHERS, owner, owner, OTHERS);
}

/* Sums are modulo 2^64, so UINT64_MAX times is once less. */
static void add_times(struct server_usage *sum, const struct server_usage *usage, uint64_t times)
{
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        sum->gpu_ns[i] += times * usage->gpu_ns[i];
        sum->sm_ns[i] += times * usage->sm_ns[i];
    }
    sum->shared_ns += times * usage->shared_ns;
    sum->copy_ns += times * usage->copy_ns;
    sum->queued_ns += times * usage->queued_ns;
    sum->launches += times * usage->launches;
    sum->copies += times * usage->copies;
    sum->copied_up += times * usage->copied_up;
    sum->copied_down += times * usage->copied_down;
    sum->copied_within += times * usage->copied_within;
    sum->stalls += times * usage->stalls;
    sum->stalled_ms += times * usage->stalled_ms;
    sum->evictions += times * usage->evictions;
    sum->swapped_out += times * usage->swapped_out;
    sum->swapped_in += times * usage->swapped_in;
}

void usage_add(struct server_usage *sum, const struct server_usage *usage)
{
    add_times(sum, usage, 1);
}

void usage_subtract(struct server_usage *sum, const struct server_usage *usage)
{
    add_times(sum, usage, UINT64_MAX);
}
