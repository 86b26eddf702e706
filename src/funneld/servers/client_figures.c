/* SPDX-License-Identifier: Apache-2.0 */
/* See client_figures.h. */
#include "client_figures.h"

#include "clock.h"

/* The server's samples of a busy machine come late, and its clock begins before ours is read. */
#define SLACK_NS NS_PER_SEC

/* No device copies more: 16 TB/s. */
#define COPIED_BYTES_PER_NS 16384u

static bool cut(uint64_t *figure, uint64_t most)
{
    bool fits = *figure <= most;

    if (!fits)
        *figure = most;
    return fits;
}

/* UINT64_MAX where the product is larger. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* How often something has happened, and how many bytes were copied. These are counted when they are
 * asked for, which may be before they can be done. The mean wait is an estimate. */
static void cut_counts(struct server_usage *usage, uint64_t span)
{
    uint64_t bytes = times(span, COPIED_BYTES_PER_NS);

    cut(&usage->wait_ns, span);
    cut(&usage->launches, span);
    cut(&usage->copies, span);
    cut(&usage->stalls, span / NS_PER_MS);
    cut(&usage->copied_up, bytes);
    cut(&usage->copied_down, bytes);
    cut(&usage->copied_within, bytes);
    cut(&usage->evictions, span / NS_PER_MS);
    cut(&usage->swapped_out, bytes);
    cut(&usage->swapped_in, bytes);
}

bool client_usage_bound(struct server_usage *usage, const struct client_bounds *bounds)
{
    uint64_t span = bounds->elapsed_ns + SLACK_NS, on_all = 0;
    bool fits = true;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        uint64_t there = i < bounds->ready->device_count ? span : 0;
        fits &= cut(&usage->gpu_ns[i], there);
        fits &= cut(&usage->sm_ns[i], times(there, bounds->ready->devices[i].sm_count));
        on_all += there;
    }
    fits &= cut(&usage->shared_ns, on_all);
    fits &= cut(&usage->copy_ns, span);
    fits &= cut(&usage->queued_ns, span);
    fits &= cut(&usage->stalled_ms, span / NS_PER_MS);
    cut_counts(usage, span);
    return fits;
}

bool client_memory_bound(uint64_t bytes[SERVER_MAX_DEVICES], const struct client_bounds *bounds)
{
    bool fits = true;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        fits &= cut(&bytes[i],
                    i < bounds->ready->device_count ? bounds->ready->devices[i].memory_total : 0);
    return fits;
}
