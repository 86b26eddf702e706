/* SPDX-License-Identifier: Apache-2.0 */
/* A range is divided where areas exist already. Areas are never joined or divided later, so the
 * range consists of the same areas when it is given back. */
#include "managed_pages.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static uint64_t page_start(uint64_t address)
{
    return address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static uint64_t page_end(uint64_t address)
{
    return page_start(address + (uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* A kernel older than the flag takes the address for a hint. */
static int map_at(uint64_t start, uint64_t size)
{
    void *wanted = (void *)(uintptr_t)start;
    void *got = mmap(wanted, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == MAP_FAILED)
        return -errno;
    if (got == wanted)
        return 0;
    munmap(got, size);
    return -EEXIST;
}

static int add_area(struct managed_pages *pages, uint64_t start, uint64_t size)
{
    int error = map_at(start, size);

    if (error)
        return error;
    error = pages->fill ? pages->fill(start, size) : 0;
    if (!error) {
        error = ranges_add(&pages->areas, start, size, (void *)(uintptr_t)1);
        if (error && pages->empty)
            pages->empty(start, size);
    }
    if (error)
        munmap((void *)(uintptr_t)start, size);
    return error;
}

static void end_area(struct managed_pages *pages, uint64_t start, uint64_t size)
{
    if (pages->empty)
        pages->empty(start, size);
    munmap((void *)(uintptr_t)start, size);
}

/* Counts `by` more users of an area, which is unmapped when none is left. */
static void count_area(struct managed_pages *pages, const struct range *area, intptr_t by)
{
    struct range old = *area;
    intptr_t users = (intptr_t)old.value + by;

    ranges_remove(&pages->areas, old.start, NULL);
    if (users)
        ranges_add(&pages->areas, old.start, old.size, (void *)users);
    else
        end_area(pages, old.start, old.size);
}

static void give_until(struct managed_pages *pages, uint64_t start, uint64_t end)
{
    while (start < end) {
        const struct range *area = ranges_find(&pages->areas, start);

        start = area->start + area->size;
        count_area(pages, area, -1);
    }
}

int managed_pages_take(struct managed_pages *pages, uint64_t address, uint64_t size)
{
    uint64_t start = page_start(address), end = page_end(address + size), at = start;
    int error = 0;

    while (at < end && !error) {
        const struct range *area = ranges_find(&pages->areas, at);
        const struct range *next = ranges_next(&pages->areas, at);
        uint64_t until = !area && next && next->start < end ? next->start : end;

        if (area) {
            until = area->start + area->size;
            count_area(pages, area, 1);
        } else {
            error = add_area(pages, at, until - at);
        }
        if (!error)
            at = until;
    }
    if (error)
        give_until(pages, start, at);
    return error;
}

void managed_pages_give(struct managed_pages *pages, uint64_t address, uint64_t size)
{
    give_until(pages, page_start(address), page_end(address + size));
}
