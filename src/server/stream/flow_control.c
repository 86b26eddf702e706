/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_control.h. */
#include "flow_control.h"

/* Before the time of a submission is known, which may be a kernel of a second. */
#define LIMIT_FIRST 4
#define LIMIT_MIN 2
#define LIMIT_MAX FLOW_SUBMISSIONS_MAX

/* In one of several streams that a program fills one after the other: at least eight. */
#define SEVERAL_TIMES 4

/* The limit of a stream whose submissions took little time, though none was timed. */
#define LIMIT_SUPPOSED 64
#define STEP_FIRST 8
#define STEP_UNKNOWN 2
#define CHECKPOINTS_WANTED 4 /* in flight: behind the one that is awaited there is more work */

/* A checkpoint is polled a few times in the time that its work takes: each poll takes the driver's
 * lock. */
#define POLLS_AT_CHECKPOINT 4
#define POLL_NS_MIN (20 * NS_PER_US)
#define POLL_NS_MAX (1 * NS_PER_MS)

/* A wait that is shorter says nothing of the time of a submission. */
#define WAIT_NS_MIN (20 * NS_PER_MS)

/* After this time without progress twice as much may be in flight. */
#define EXTEND_NS (2 * NS_PER_SEC)

/* One part in so many of the average is replaced by a new time. */
#define WEIGHT 4

static void set_limit(struct flow_control *flow, uint64_t limit)
{
    flow->limit = limit > LIMIT_MAX ? LIMIT_MAX : limit < LIMIT_MIN ? LIMIT_MIN : (int32_t)limit;
    flow->batch = flow->limit / 2 < FLOW_BATCH_MAX ? flow->limit / 2 : FLOW_BATCH_MAX;
}

void flow_control_init(struct flow_control *flow, bool is_unlimited)
{
    set_limit(flow, is_unlimited ? FLOW_SUBMISSIONS_MAX : LIMIT_FIRST);
    flow->step = is_unlimited ? FLOW_SUBMISSIONS_MAX : 0;
    flow->burst = LIMIT_MAX;
    flow->in_flight_ns = FLOW_IN_FLIGHT_NS;
}

/* The next step is due at once: the last one was made for the other time. */
void flow_control_set_time(struct flow_control *flow, uint64_t in_flight_ns)
{
    flow->in_flight_ns = in_flight_ns;
    if (flow->submission_ns)
        set_limit(flow, in_flight_ns / flow->submission_ns);
    flow->step -= flow->left;
    flow->left = 0;
}

static void count_burst(struct flow_control *flow, int32_t count, bool is_new)
{
    if (is_new) {
        flow->last_burst = flow->burst;
        flow->burst = 0;
    }
    if (flow->burst < LIMIT_MAX)
        flow->burst += count;
}

static void learn_time(struct flow_control *flow, uint64_t submission_ns)
{
    uint64_t known = flow->submission_ns, most = 2 * (uint64_t)flow->limit;

    flow->submission_ns = known ? known - known / WEIGHT + submission_ns / WEIGHT : submission_ns;
    uint64_t limit = flow->in_flight_ns / (flow->submission_ns + 1);
    set_limit(flow, limit < most ? limit : most);
}

/* A time counts that is at least longer, or at most shorter, than the average. */
static void learn_between(struct flow_control *flow, int32_t count, uint64_t before, uint64_t now)
{
    uint64_t least = (before - flow->passed_at) / (uint64_t)count;
    uint64_t most = (now - flow->passed_after) / (uint64_t)count;

    if (least > flow->submission_ns)
        learn_time(flow, least);
    else if (!flow->submission_ns || most < flow->submission_ns)
        learn_time(flow, most);
}

/* `count` submissions were found done. The first of them was not yet at `before`, or that is 0. The
 * thread may have slept for long before it looked, so it knows only these bounds. */
static void count_done(struct flow_control *flow, int32_t count, uint64_t before, uint64_t now)
{
    flow->in_flight -= count;
    if (before && flow->passed_at)
        learn_between(flow, count, before, now);
    flow->passed_after = before;
    flow->passed_at = before ? now : 0;
}

/* The stream has done `count` submissions since the last step, and may have been idle meanwhile. */
static void learn_step(struct flow_control *flow, int32_t count, uint64_t now)
{
    uint64_t took = now - flow->stepped_at;

    if (count && !flow->submission_ns &&
        took < flow->in_flight_ns / LIMIT_SUPPOSED * (uint64_t)count)
        set_limit(flow, LIMIT_SUPPOSED);
}

static void learn_wait(struct flow_control *flow, int32_t count, uint64_t waited)
{
    uint64_t least = count ? waited / (uint64_t)count : 0;

    if (waited < WAIT_NS_MIN || least <= flow->submission_ns)
        return;
    flow->submission_ns = least;
    set_limit(flow, flow->in_flight_ns / least);
}

/* The next checkpoint, behind `count` submissions, has been awaited for this long. Other work on
 * the GPU may be the cause; then later checkpoints tell better. True when twice as much may be in
 * flight now, because the work there may wait for the client's next launch. */
static bool has_waited(struct flow_control *flow, int32_t count, uint64_t waited)
{
    learn_wait(flow, count, waited);
    if (waited < EXTEND_NS)
        return false;
    set_limit(flow, 2 * (uint64_t)flow->limit);
    flow->passed_at = 0;
    return true;
}

static int32_t more_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* One more than a burst, so that its last submission is not waited for before the next stream gets
 * some. */
static int32_t limit_of_several(const struct flow_control *flow)
{
    int32_t burst = more_of(flow->burst, flow->last_burst) + 1;
    int32_t wanted = more_of(flow->limit, burst);

    return wanted < flow->limit * SEVERAL_TIMES ? wanted : flow->limit * SEVERAL_TIMES;
}

static int32_t capacity_by(const struct flow_control *flow, enum flow_rule rule)
{
    if (rule == FLOW_BY_COUNT)
        return FLOW_SUBMISSIONS_MAX;
    return rule == FLOW_BY_LIMIT ? flow->limit : limit_of_several(flow);
}

static uint64_t poll_ns(const struct flow_control *flow, int32_t awaited)
{
    uint64_t pause = (uint64_t)awaited * flow->submission_ns / POLLS_AT_CHECKPOINT;

    return pause < POLL_NS_MIN ? POLL_NS_MIN : pause > POLL_NS_MAX ? POLL_NS_MAX : pause;
}

static void learn_given(struct flow_control *flow, const struct flow_poll *poll)
{
    if (poll->given)
        count_burst(flow, poll->given, poll->is_new_burst);
    if (!poll->awaited)
        learn_step(flow, poll->given, poll->now);
    if (poll->is_idle) {
        flow->in_flight = 0;
        flow->passed_at = 0;
    }
}

/* The first checkpoint of a stream that was idle comes later: the others follow before it is
 * awaited. */
static void begin_step(struct flow_control *flow, const struct flow_poll *poll)
{
    int32_t step = flow->limit / CHECKPOINTS_WANTED;
    int32_t first = flow->submission_ns || flow->limit > LIMIT_FIRST ? STEP_FIRST : STEP_UNKNOWN;
    int32_t least = !poll->is_idle ? 1 : flow->limit < first ? flow->limit : first;

    flow->stepped_at = poll->now;
    flow->step = more_of(step, least);
    flow->left = flow->step;
}

uint64_t flow_control_poll(struct flow_control *flow, struct flow_poll *poll)
{
    if (poll->done)
        count_done(flow, poll->done, poll->before, poll->now);
    learn_given(flow, poll);
    if (poll->done || !poll->before ||
        has_waited(flow, poll->awaited, poll->now - poll->awaits_since))
        poll->awaits_since = poll->now;
    if (poll->begins_step)
        begin_step(flow, poll);
    poll->before = poll->now;
    poll->given = 0;
    return flow->in_flight < capacity_by(flow, poll->rule) ? 0 : poll_ns(flow, poll->awaited);
}
