/* SPDX-License-Identifier: Apache-2.0 */
/* A short sorted array. */
#include "address_spans.h"

#include <string.h>

static uint64_t end_of(const struct address_span *span)
{
    return span->start + span->size;
}

/* Makes the span and the next one a single one. */
static void join_next(struct address_spans *spans, uint32_t index)
{
    struct address_span *span = &spans->each[index];
    uint64_t end = end_of(span + 1) > end_of(span) ? end_of(span + 1) : end_of(span);

    span->size = end - span->start;
    memmove(span + 1, span + 2, (spans->count - index - 2) * sizeof(*span));
    spans->count--;
}

static uint64_t gap_behind(const struct address_spans *spans, uint32_t index)
{
    const struct address_span *span = &spans->each[index];

    return end_of(span) >= span[1].start ? 0 : span[1].start - end_of(span);
}

static void join_closest(struct address_spans *spans)
{
    uint32_t closest = 0;

    for (uint32_t i = 1; i + 1 < spans->count; i++)
        if (gap_behind(spans, i) < gap_behind(spans, closest))
            closest = i;
    join_next(spans, closest);
}

/* A new span may reach over several that follow. */
static void join_overlaps(struct address_spans *spans)
{
    for (uint32_t i = 0; i + 1 < spans->count;) {
        if (gap_behind(spans, i) == 0)
            join_next(spans, i);
        else
            i++;
    }
}

void address_spans_add(struct address_spans *spans, uint64_t start, uint64_t size)
{
    uint32_t at = 0;

    while (at < spans->count && spans->each[at].start < start)
        at++;
    memmove(&spans->each[at + 1], &spans->each[at], (spans->count - at) * sizeof(spans->each[0]));
    spans->each[at] = (struct address_span){start, size};
    spans->count++;
    join_overlaps(spans);
    if (spans->count > ADDRESS_SPANS_MAX)
        join_closest(spans);
}
