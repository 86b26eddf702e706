/* SPDX-License-Identifier: Apache-2.0 */
/* See early_report.h. */
#include "early_report.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "accounting.h"
#include "clock.h"
#include "daemon_report.h"
#include "fd.h"
#include "lane_signs.h"
#include "loop.h"
#include "server_life.h"
#include "session_life.h"

/* Period of the reports to the daemon, in case the server is killed. */
#define BEATS_BETWEEN_REPORTS 4u

/* The same while a client may wait for long kernels of another. */
#define EARLY_PERIOD_NS (500 * NS_PER_MS)

/* From one look for signs to the next while clients share a device. */
#define LOOK_PERIOD_NS (100 * NS_PER_MS)

/* ---- signs ---- */

struct usage_mark usage_mark_of(const struct server_usage *usage)
{
    struct usage_mark mark = {.shared_ns = usage->shared_ns, .launches = usage->launches};

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        mark.busy_ns += usage->gpu_ns[i];
    return mark;
}

/* False where that is too little to tell anything. */
static bool used_since(const struct usage_mark *since, const struct usage_mark *now,
                       struct usage_mark *ret_used)
{
    *ret_used = (struct usage_mark){.busy_ns = now->busy_ns - since->busy_ns,
                                    .shared_ns = now->shared_ns - since->shared_ns,
                                    .launches = now->launches - since->launches};
    return ret_used->busy_ns >= LANE_BUSY_NS;
}

bool usage_has_long_kernels(const struct usage_mark *since, const struct usage_mark *now)
{
    struct usage_mark used;

    return used_since(since, now, &used) && used.busy_ns >= LANE_LONG_NS * used.launches;
}

bool usage_is_shared(const struct usage_mark *since, const struct usage_mark *now)
{
    struct usage_mark used;

    return used_since(since, now, &used) &&
           100 * used.shared_ns >= LANE_SHARED_PERCENT * used.busy_ns;
}

struct signs {
    bool any_long, any_shared, begin; /* the last since the last look */
};

static void add_signs(struct session *session, struct signs *signs)
{
    struct session_life *life = session->life;
    struct server_usage usage;

    accounting_usage(session, &usage);
    life->used = usage_mark_of(&usage);
    signs->any_long |= usage_has_long_kernels(&life->reported, &life->used);
    signs->any_shared |= usage_is_shared(&life->reported, &life->used);
    signs->begin |= usage_is_shared(&life->looked, &life->used);
}

/* One client alone shares with no other, so these are two. */
static struct signs find_signs(const struct server *server)
{
    struct signs signs = {.any_long = false};

    list_for_each (struct session, session, &server->sessions, link)
        add_signs(session, &signs);
    return signs;
}

/* ---- reports ---- */

/* The first sign is told at once, but only after a report without any. The report before it divides
 * the time alone from that beside others. So signs that come and go cause few reports more than
 * those that last. */
bool report_pace_is_due(const struct report_pace *pace, uint64_t now, bool has_signs, bool begins)
{
    if (has_signs)
        return !pace->told_signs || now - pace->at >= EARLY_PERIOD_NS;
    return (begins && !pace->told_signs && !pace->told_begin) ||
           pace->beats >= BEATS_BETWEEN_REPORTS;
}

/* By what add_signs() has just added up. */
static void mark_all(struct server *server, bool reported)
{
    list_for_each (struct session, session, &server->sessions, link) {
        struct session_life *life = session->life;

        life->looked = life->used;
        if (reported)
            life->reported = life->used;
    }
}

static bool report_if_due(struct server *server)
{
    struct report_pace *pace = &server->life->reports;
    struct signs signs = find_signs(server);
    uint64_t now = clock_ns();
    bool any = signs.any_long && signs.any_shared, begins = signs.any_long && signs.begin;

    if (!report_pace_is_due(pace, now, any, begins))
        return false;
    *pace = (struct report_pace){.at = now, .told_signs = any, .told_begin = begins && !any};
    daemon_report_usage(server);
    mark_all(server, true);
    return true;
}

void early_report_beat(struct server *server)
{
    server->life->reports.beats++;
    report_if_due(server);
}

/* ---- between heartbeats ---- */

static void on_look(void *context, int look_fd)
{
    uint64_t count;

    if (read(look_fd, &count, sizeof(count)) == (ssize_t)sizeof(count) && !report_if_due(context))
        mark_all(context, false);
}

int early_report_start(struct server *server)
{
    int *look_fd = &server->life->look_fd;

    *look_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*look_fd >= 0 && loop_watch_readable(server->life->loop, *look_fd, on_look, server))
        return 0;
    fd_close(look_fd);
    return -ENOMEM;
}

void early_report_watch(const struct server *server, struct sharing_watch *watch)
{
    uint64_t shared_ns = accounting_shared_ns(server), now = clock_ns(), one = 1;

    if (shared_ns == watch->shared_ns || now < watch->look_at + LOOK_PERIOD_NS)
        return;
    watch->shared_ns = shared_ns;
    if (write(server->life->look_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        watch->look_at = now;
}
