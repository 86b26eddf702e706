/* SPDX-License-Identifier: Apache-2.0 */
/* Usually little differs, so equal bytes are skipped in blocks. */
#include "three_way.h"

#include <string.h>

#define BLOCK 256u

static size_t skip_same(const unsigned char *a, const unsigned char *b, size_t size, size_t at)
{
    while (size - at >= BLOCK && memcmp(a + at, b + at, BLOCK) == 0)
        at += BLOCK;
    while (at < size && a[at] == b[at])
        at++;
    return at;
}

bool three_way_next(const void *mine, const void *base, size_t size, size_t at, size_t *ret_start,
                    size_t *ret_end)
{
    const unsigned char *a = mine, *b = base;
    size_t start = skip_same(a, b, size, at), end = start;

    if (start == size)
        return false;
    while (end < size && a[end] != b[end])
        end++;
    *ret_start = start;
    *ret_end = end;
    return true;
}

bool three_way_span(const void *mine, const void *base, size_t size, size_t *ret_start,
                    size_t *ret_end)
{
    const unsigned char *a = mine, *b = base;
    size_t start = skip_same(a, b, size, 0), end = size;

    if (start == size)
        return false;
    while (end - start > BLOCK && memcmp(a + end - BLOCK, b + end - BLOCK, BLOCK) == 0)
        end -= BLOCK;
    while (end - start > 1 && a[end - 1] == b[end - 1])
        end--;
    *ret_start = start;
    *ret_end = end;
    return true;
}

struct sides {
    unsigned char *mine, *base;
    const unsigned char *asked, *theirs;
};

static void take_over(const struct sides *sides, size_t start, size_t end)
{
    for (size_t i = start; i < end; i++) {
        if (sides->base[i] != sides->asked[i])
            continue;
        if (sides->mine[i] == sides->base[i])
            sides->mine[i] = sides->theirs[i];
        sides->base[i] = sides->theirs[i];
    }
}

void three_way_merge(void *mine, void *base, const void *asked, const void *theirs, size_t size)
{
    const struct sides sides = {.mine = mine, .base = base, .asked = asked, .theirs = theirs};
    size_t start, end = 0;

    while (three_way_next(theirs, base, size, end, &start, &end))
        take_over(&sides, start, end);
}
