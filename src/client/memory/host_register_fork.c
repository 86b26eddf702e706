/* SPDX-License-Identifier: Apache-2.0 */
/* See host_register_fork.h. */
#include "host_register_fork.h"

#include <string.h>
#include <sys/mman.h>

#include "fd.h"
#include "host_register_table.h"
#include "write_guard.h"

/* In a child of fork, this much of either end is as it was at the fork. It may hold what has
 * nothing to do with the registered memory. The rest it shares with the parent until it writes
 * there. */
#define SAVED_MAX (512u << 10)

static uint64_t saved_size(const struct registration *registration)
{
    return registration->size < 2 * SAVED_MAX ? registration->size : 2 * SAVED_MAX;
}

/* Bytes in the middle that are not saved. */
static uint64_t middle_size(const struct registration *registration)
{
    return registration->size - saved_size(registration);
}

static void save(struct registration *registration)
{
    const uint64_t size = saved_size(registration), half = size / 2;
    const char *window = (const char *)(uintptr_t)registration->window;
    void *saved = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    registration->saved = saved == MAP_FAILED ? NULL : saved;
    if (!registration->saved)
        return;
    memcpy(registration->saved, window, half);
    memcpy(registration->saved + half, window + half + middle_size(registration), size - half);
}

/* Bytes [from, to) of the range, as far as the area has them. */
static void restore_part(const struct registration *registration, const struct page_area *area,
                         uint64_t from, uint64_t to, const char *saved)
{
    const uint64_t start = area->start - registration->start, end = start + area->size;
    const uint64_t first = start > from ? start : from, last = end < to ? end : to;

    if (first < last)
        memcpy((char *)(uintptr_t)registration->start + first, saved + (first - from),
               last - first);
}

static void restore(const struct registration *registration, const struct page_area *area)
{
    const uint64_t half = saved_size(registration) / 2;

    if (!registration->saved || !(area->protection & PROT_WRITE))
        return;
    restore_part(registration, area, 0, half, registration->saved);
    restore_part(registration, area, half + middle_size(registration), registration->size,
                 registration->saved + half);
}

/* The lock is held from here to the other side of the fork. */
void host_register_before_fork(void)
{
    struct registration *registration = NULL;

    write_guard_before_fork();
    pthread_mutex_lock(&registrations.lock);
    while ((registration = registration_next_locked(registration)))
        if (registration->live && !registration->of_file)
            save(registration);
}

void host_register_after_fork_in_parent(void)
{
    struct registration *registration = NULL;

    while ((registration = registration_next_locked(registration))) {
        if (registration->saved)
            munmap(registration->saved, saved_size(registration));
        registration->saved = NULL;
    }
    pthread_mutex_unlock(&registrations.lock);
    write_guard_after_fork();
}

/* The same pages, but what is written to them stays in the child. */
static void make_private(const struct registration *registration)
{
    struct page_area areas[REGISTRATION_AREAS_MAX];
    unsigned count;

    if (registration->of_file || !registration_find_pages(registration, areas, &count))
        return;
    for (unsigned i = 0; i < count; i++) {
        void *place = (void *)(uintptr_t)areas[i].start;

        if (mmap(place, areas[i].size, areas[i].protection, MAP_PRIVATE | MAP_FIXED,
                 registration->fd, (off_t)areas[i].offset) == place)
            restore(registration, &areas[i]);
    }
}

/* The registrations themselves may lie in registered pages: nothing is written before all pages are
 * the child's own. */
void host_register_after_fork_in_child(void)
{
    struct registration *registration = NULL;

    while ((registration = registration_next_locked(registration)))
        make_private(registration);
    while ((registration = registration_next_locked(registration)))
        fd_close(&registration->fd);
    pthread_mutex_unlock(&registrations.lock);
    write_guard_after_fork();
}
