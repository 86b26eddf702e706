/* SPDX-License-Identifier: Apache-2.0 */
/* The interval is a fixed part of the wait so far, within bounds. */
#include "timed_poll.h"

#include <sys/prctl.h>

#include "clock.h"
#include "feature.h"

#define SHORTEST_NS (30 * NS_PER_US)
#define PART_OF_WAIT 128
#define OVERLOAD_NS NS_PER_MS    /* a thread that has a CPU to run on is never this late */
#define ALONE_NS (2 * NS_PER_MS) /* while it needs no wake, which costs other threads time */
#define PUNCTUAL_NS 1            /* 0 would mean the default */

static bool is_switched_off(void)
{
    return feature_is_off_once(FEATURE_TIMED_POLLING);
}

struct timed_poll timed_poll_begin(void)
{
    struct timed_poll poll = {.enabled = !is_switched_off()};

    if (!poll.enabled)
        return poll;
    poll.began = clock_ns();
    poll.slack = prctl(PR_GET_TIMERSLACK);
    if (poll.slack > 0)
        prctl(PR_SET_TIMERSLACK, PUNCTUAL_NS);
    return poll;
}

static uint64_t interval_after(uint64_t waited, uint64_t longest)
{
    uint64_t interval = waited / PART_OF_WAIT;

    if (interval < SHORTEST_NS)
        interval = SHORTEST_NS;
    return interval < longest ? interval : longest;
}

uint64_t timed_poll_next(struct timed_poll *poll, uint64_t longest)
{
    if (!poll->enabled)
        return longest;

    uint64_t now = clock_ns();

    if (poll->woken && now - poll->woken > poll->interval + OVERLOAD_NS) {
        poll->enabled = false;
        return longest;
    }
    poll->woken = now;
    poll->interval = interval_after(now - poll->began, longest);
    return poll->interval;
}

bool timed_poll_needs_wake(const struct timed_poll *poll)
{
    return !poll->enabled || (poll->woken && poll->woken - poll->began > ALONE_NS);
}

void timed_poll_end(struct timed_poll *poll)
{
    if (poll->slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)poll->slack);
}
