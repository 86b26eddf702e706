/* SPDX-License-Identifier: Apache-2.0 */
/* The interval is a fixed part of the wait so far, within bounds. */
#include "timed_poll.h"

#include <stdatomic.h>
#include <sys/prctl.h>

#include "clock.h"
#include "feature.h"

#define SHORTEST_NS (30 * NS_PER_US)
#define SHORTEST_BEHIND_SPIN_NS (10 * NS_PER_US)
#define PART_OF_WAIT 128
#define PART_WHILE_SHORT 16
#define OVERLOAD_NS NS_PER_MS    /* a thread that has a CPU to run on is never this late */
#define ALONE_NS (2 * NS_PER_MS) /* while it needs no wake, which costs other threads time */
#define ALONE_WHILE_SHORT_NS (20 * NS_PER_MS)
#define EXPECTED_MAX_NS NS_PER_MS /* what a wrong expectation may cost */
#define PUNCTUAL_NS 1             /* 0 would mean the default */

/* A thread that may spin for so long shares its CPU with no other program. */
#define OWN_CPU_SPIN_NS (5 * NS_PER_US)

/* Trainings wait for longer, and for various times. */
#define WORTH_SPINNING_NS (200 * NS_PER_US)

/* A sleep that is so late has waited for a CPU, and tells nothing of timers. */
#define LATENESS_MAX_NS (50 * NS_PER_US)
#define LATENESS_WEIGHT 8

static _Atomic uint32_t lateness_ns = 8 * NS_PER_US; /* on average; a hint: relaxed */

static bool is_switched_off(void)
{
    return feature_is_off_once(FEATURE_TIMED_POLLING);
}

struct timed_poll timed_poll_begin(struct timed_poll_scarcity scarcity)
{
    struct timed_poll poll = {.enabled = !is_switched_off(), .scarcity = scarcity};

    if (!poll.enabled)
        return poll;
    if (poll.scarcity.expected > EXPECTED_MAX_NS)
        poll.scarcity.expected = EXPECTED_MAX_NS;
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

static bool spins_when_due(const struct timed_poll_scarcity *scarcity)
{
    return scarcity->spin_ns >= OWN_CPU_SPIN_NS && scarcity->expected <= WORTH_SPINNING_NS;
}

static uint64_t interval_after(const struct timed_poll *poll, uint64_t waited)
{
    uint64_t part = poll->scarcity.spin_ns ? PART_WHILE_SHORT : PART_OF_WAIT;

    return longer_of(waited / part,
                     spins_when_due(&poll->scarcity) ? SHORTEST_BEHIND_SPIN_NS : SHORTEST_NS);
}

/* How long before the expected end the first sleep ends: half a spin, and what sleeps are late.
 * With too few CPUs it is one interval, the same for all: the lateness of each would give it
 * another share of the CPUs. */
static uint64_t earlier_by(const struct timed_poll_scarcity *scarcity)
{
    if (spins_when_due(scarcity))
        return scarcity->spin_ns / 2 + atomic_load_explicit(&lateness_ns, memory_order_relaxed);
    return longer_of(scarcity->expected / PART_WHILE_SHORT, SHORTEST_NS);
}

static bool is_worth_a_long_sleep(const struct timed_poll_scarcity *scarcity)
{
    return scarcity->expected > 2 * earlier_by(scarcity);
}

bool timed_poll_sleeps_first(struct timed_poll_scarcity scarcity)
{
    return spins_when_due(&scarcity) && is_worth_a_long_sleep(&scarcity);
}

bool timed_poll_counts(struct timed_poll_scarcity scarcity, uint64_t took)
{
    return spins_when_due(&scarcity) || took > scarcity.spin_ns;
}

static uint64_t first_interval(const struct timed_poll_scarcity *scarcity)
{
    return is_worth_a_long_sleep(scarcity) ? scarcity->expected - earlier_by(scarcity)
                                           : SHORTEST_NS;
}

void timed_poll_note_lateness(const struct timed_poll *poll)
{
    uint64_t slept = clock_ns() - poll->woken;
    uint64_t known = atomic_load_explicit(&lateness_ns, memory_order_relaxed);

    if (slept < poll->interval || slept - poll->interval > LATENESS_MAX_NS)
        return;
    known = known - known / LATENESS_WEIGHT + (slept - poll->interval) / LATENESS_WEIGHT;
    atomic_store_explicit(&lateness_ns, (uint32_t)known, memory_order_relaxed);
}

static bool is_overloaded(const struct timed_poll *poll, uint64_t now)
{
    return !poll->scarcity.spin_ns && poll->woken &&
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
    bool first = poll->scarcity.spin_ns && !poll->woken;
    poll->interval =
        first ? first_interval(&poll->scarcity) : interval_after(poll, now - poll->began);
    if (poll->interval > longest)
        poll->interval = longest;
    poll->woken = now;
    return poll->interval;
}

bool timed_poll_needs_wake(const struct timed_poll *poll)
{
    uint64_t alone = poll->scarcity.spin_ns ? ALONE_WHILE_SHORT_NS : ALONE_NS;

    return !poll->enabled || (poll->woken && poll->woken - poll->began > alone);
}

void timed_poll_end(struct timed_poll *poll)
{
    if (poll->slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)poll->slack);
}
