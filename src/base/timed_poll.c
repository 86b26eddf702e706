/* SPDX-License-Identifier: Apache-2.0 */
/* The interval is a fixed part of the wait so far, within bounds. */
#include "timed_poll.h"

#include <sys/prctl.h>

#include "clock.h"
#include "feature.h"

#define SHORTEST_NS (30 * NS_PER_US)
#define PART_OF_WAIT 128
#define PART_WHILE_SHORT 16
#define OVERLOAD_NS NS_PER_MS    /* a thread that has a CPU to run on is never this late */
#define ALONE_NS (2 * NS_PER_MS) /* while it needs no wake, which costs other threads time */
#define ALONE_WHILE_SHORT_NS (20 * NS_PER_MS)
#define EXPECTED_MAX_NS NS_PER_MS /* what a wrong expectation may cost */
#define PUNCTUAL_NS 1             /* 0 would mean the default */

static bool is_switched_off(void)
{
    return feature_is_off_once(FEATURE_TIMED_POLLING);
}

struct timed_poll timed_poll_begin(struct timed_poll_scarcity scarcity)
{
    struct timed_poll poll = {.enabled = !is_switched_off(), .scarcity = scarcity};

    if (!poll.enabled)
        return poll;
    poll.began = clock_ns();
    poll.slack = prctl(PR_GET_TIMERSLACK);
    if (poll.slack > 0)
        prctl(PR_SET_TIMERSLACK, PUNCTUAL_NS);
    return poll;
}

static uint64_t longer_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t interval_after(const struct timed_poll *poll, uint64_t waited)
{
    uint64_t part = poll->scarcity.cpus_are_short ? PART_WHILE_SHORT : PART_OF_WAIT;

    return longer_of(waited / part, SHORTEST_NS);
}

/* Ends one interval before the wait is expected to end. So a wait of that length is polled twice,
 * and is noticed as early as with more polls. */
static uint64_t first_interval(const struct timed_poll *poll)
{
    uint64_t expected = poll->scarcity.expected;

    if (!poll->scarcity.cpus_are_short)
        return SHORTEST_NS;
    if (expected > EXPECTED_MAX_NS)
        expected = EXPECTED_MAX_NS;
    uint64_t last = interval_after(poll, expected);
    return expected > 2 * last ? expected - last : SHORTEST_NS;
}

static bool is_overloaded(const struct timed_poll *poll, uint64_t now)
{
    return !poll->scarcity.cpus_are_short && poll->woken &&
           now - poll->woken > poll->interval + OVERLOAD_NS;
}

uint64_t timed_poll_next(struct timed_poll *poll, uint64_t longest)
{
    if (!poll->enabled)
        return longest;

    uint64_t now = clock_ns();

    if (is_overloaded(poll, now)) {
        poll->enabled = false;
        return longest;
    }
    poll->interval =
        longer_of(interval_after(poll, now - poll->began), poll->woken ? 0 : first_interval(poll));
    if (poll->interval > longest)
        poll->interval = longest;
    poll->woken = now;
    return poll->interval;
}

bool timed_poll_needs_wake(const struct timed_poll *poll)
{
    uint64_t alone = poll->scarcity.cpus_are_short ? ALONE_WHILE_SHORT_NS : ALONE_NS;

    return !poll->enabled || (poll->woken && poll->woken - poll->began > alone);
}

void timed_poll_end(struct timed_poll *poll)
{
    if (poll->slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)poll->slack);
}
