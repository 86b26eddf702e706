/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_stay.h. */
#include "memory_stay.h"

#include "client_class.h"
#include "clock.h"

/* Times the copies out and back: copies take one part of five. */
#define QUANTUM_FACTOR 4u
#define WAYS 2u

/* A program that comes back gets something done, however little memory was away. A change takes
 * some time beside the copies: an idle point, threads that wake up. */
#define QUANTUM_NS_MIN (200 * NS_PER_MS)

/* Of copies, while none has been measured: 20 GB/s. */
#define BYTES_PER_US_INITIAL 20000u

/* Without thrashing for so many quanta, the pace halves. */
#define QUIET_QUANTA 8u

static uint64_t expected_ns(const struct stay_pace *pace, uint64_t bytes)
{
    if (!pace->bytes)
        return bytes / BYTES_PER_US_INITIAL * NS_PER_US;
    return (uint64_t)((double)bytes * (double)pace->ns / (double)pace->bytes);
}

uint64_t memory_stay_quantum(const struct stay_pace *pace, const struct memory_stay *stay,
                             uint64_t bytes, bool is_idle, uint64_t most)
{
    uint64_t way = stay->back_ns ? stay->back_ns : expected_ns(pace, bytes);
    uint64_t quantum = QUANTUM_FACTOR * WAYS * way * (is_idle ? 1 : pace->factor);

    if (quantum < QUANTUM_NS_MIN)
        return QUANTUM_NS_MIN;
    return quantum < most ? quantum : most;
}

static bool set_factor(struct stay_pace *pace, unsigned factor)
{
    if (factor < 1 || factor > STAY_PACE_MAX)
        return false;
    pace->factor = factor;
    return true;
}

/* Several programs that come back in the same quantum are one sign of thrashing. */
static bool note_thrashing(struct stay_pace *pace, uint64_t quantum, uint64_t now)
{
    pace->thrashed_at = now;
    if (now - pace->grown_at < quantum || !set_factor(pace, pace->factor * 2))
        return false;
    pace->grown_at = now;
    return true;
}

static bool follow_return(struct stay_pace *pace, uint64_t away_ns, uint64_t quantum, uint64_t now)
{
    if (away_ns < quantum)
        return note_thrashing(pace, quantum, now);
    if (now - pace->thrashed_at < QUIET_QUANTA * quantum)
        return false;
    pace->thrashed_at = now;
    return set_factor(pace, pace->factor / 2);
}

bool memory_stay_returns(struct stay_pace *pace, struct memory_stay *stay, uint64_t bytes,
                         uint64_t ns, uint64_t called_at, uint64_t quantum)
{
    uint64_t left_at = stay->left_at, now = clock_ns();

    pace->bytes += bytes;
    pace->ns += ns;
    stay->back_ns = ns;
    stay->left_at = 0;
    stay->since = now;
    return left_at && follow_return(pace, called_at - left_at, quantum, now);
}

bool resident_leaves_before(const struct resident *a, const struct resident *b, uint64_t need)
{
    bool a_suffices = a->bytes >= need, b_suffices = b->bytes >= need;

    if (a->is_partly_away != b->is_partly_away)
        return a->is_partly_away;
    if (a->class != b->class)
        return a->class == CLASS_BATCH;
    if (a->is_idle != b->is_idle)
        return a->is_idle;
    if (a_suffices != b_suffices)
        return a_suffices;
    if (!a_suffices)
        return a->bytes > b->bytes;
    return (double)a->ns * (double)b->bytes > (double)b->ns * (double)a->bytes;
}
