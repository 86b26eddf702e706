/* SPDX-License-Identifier: Apache-2.0 */
/* See early_report.h. */
#include "early_report.h"

#include "accounting.h"
#include "lane_signs.h"
#include "session_life.h"

static struct usage_mark mark_of(const struct server_usage *usage)
{
    struct usage_mark mark = {.shared_ns = usage->shared_ns, .launches = usage->launches};

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        mark.busy_ns += usage->gpu_ns[i];
    return mark;
}

/* False where that is too little to tell anything. */
static bool used_since(const struct usage_mark *since, const struct server_usage *usage,
                       struct usage_mark *ret_used)
{
    struct usage_mark now = mark_of(usage);

    *ret_used = (struct usage_mark){.busy_ns = now.busy_ns - since->busy_ns,
                                    .shared_ns = now.shared_ns - since->shared_ns,
                                    .launches = now.launches - since->launches};
    return ret_used->busy_ns >= LANE_BUSY_NS;
}

bool usage_has_long_kernels(const struct usage_mark *since, const struct server_usage *usage)
{
    struct usage_mark used;

    return used_since(since, usage, &used) && used.busy_ns >= LANE_LONG_NS * used.launches;
}

bool usage_is_shared(const struct usage_mark *since, const struct server_usage *usage)
{
    struct usage_mark used;

    return used_since(since, usage, &used) &&
           100 * used.shared_ns >= LANE_SHARED_PERCENT * used.busy_ns;
}

/* One client alone shares with no other, so these are two. */
bool early_report_is_due(const struct server *server)
{
    bool any_long = false, any_shared = false;

    list_for_each (struct session, session, &server->sessions, link) {
        const struct usage_mark *since = &session->life->reported;
        struct server_usage usage;

        accounting_usage(session, &usage);
        any_long |= usage_has_long_kernels(since, &usage);
        any_shared |= usage_is_shared(since, &usage);
    }
    return any_long && any_shared;
}

void early_report_begin(struct server *server)
{
    list_for_each (struct session, session, &server->sessions, link) {
        struct server_usage usage;

        accounting_usage(session, &usage);
        session->life->reported = mark_of(&usage);
    }
}
