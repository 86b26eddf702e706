/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_clock.h. The program's clock may count anything, such as cycles, so its rate is
 * measured from when it was set to the last sample. */
#include "cupti_clock.h"

#include <pthread.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"

#define SAMPLES 5
#define RESAMPLE_NS NS_PER_MS

struct sample {
    uint64_t monotonic_ns, value;
};

static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_timestamp program_clock;
static struct sample first, last; /* of the clock that is set; last.monotonic_ns 0 = none */

static uint64_t read_realtime(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static uint64_t read_clock(void)
{
    return program_clock ? program_clock() : read_realtime();
}

/* Of several the one that took least time: the thread was not interrupted meanwhile. */
static struct sample take_sample(void)
{
    struct sample best = {0, 0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < SAMPLES; i++) {
        uint64_t before = clock_ns();
        uint64_t value = read_clock();
        uint64_t took = clock_ns() - before;
        if (took >= shortest)
            continue;
        shortest = took;
        best = (struct sample){before + took / 2, value};
    }
    return best;
}

static void follow_clock(void)
{
    if (!first.monotonic_ns)
        first = take_sample();
    if (clock_ns() - last.monotonic_ns > RESAMPLE_NS)
        last = take_sample();
}

/* In units of the clock per nanosecond. */
static double rate(void)
{
    if (!program_clock || last.monotonic_ns <= first.monotonic_ns)
        return 1;
    return (double)(last.value - first.value) / (double)(last.monotonic_ns - first.monotonic_ns);
}

uint64_t cupti_clock_now(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&clock_lock);

    return read_clock();
}

uint64_t cupti_clock_at(uint64_t monotonic_ns)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&clock_lock);
    int64_t since;

    follow_clock();
    since = (int64_t)(monotonic_ns - last.monotonic_ns);
    return last.value + (uint64_t)(int64_t)((double)since * rate());
}

void cupti_clock_set(cupti_timestamp clock)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&clock_lock);

    program_clock = clock;
    first = last = take_sample();
}

void cupti_clock_after_fork(void)
{
    pthread_mutex_init(&clock_lock, NULL);
}
