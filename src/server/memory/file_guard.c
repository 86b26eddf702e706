/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler takes no lock. It walks a list whose entries are never removed; an unused entry has
 * no bytes.
 */
#include "file_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"

struct guarded {
    struct guarded *next; /* as it was when the entry was added */
    atomic_uint_fast64_t start, size;
    atomic_bool was_cut;
};

static struct {
    pthread_mutex_t lock; /* of writers */
    _Atomic(struct guarded *) first;
    struct sigaction before;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Partner: add_locked(), which stores the size behind the start. */
static bool contains(struct guarded *entry, uint64_t address)
{
    uint64_t size = atomic_load_explicit(&entry->size, memory_order_acquire);

    return address - atomic_load_explicit(&entry->start, memory_order_relaxed) < size;
}

/* Partner: publish_locked(). */
static struct guarded *find_guarded(uint64_t address)
{
    struct guarded *entry = atomic_load_explicit(&guard.first, memory_order_acquire);

    while (entry && !contains(entry, address))
        entry = entry->next;
    return entry;
}

/* Replaces the whole mapping by one new mapping, because the number of mappings is limited. */
static bool replace_pages(struct guarded *entry)
{
    void *start = (void *)(uintptr_t)atomic_load(&entry->start);

    atomic_store(&entry->was_cut, true);
    return mmap(start, atomic_load(&entry->size), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == start;
}

/* For another address the handler restores the previous action, and the access is repeated. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int error = errno;
    struct guarded *entry =
        info->si_code == BUS_ADRERR ? find_guarded((uintptr_t)info->si_addr) : NULL;

    (void)context;
    if (!entry || !replace_pages(entry))
        sigaction(number, &guard.before, NULL);
    errno = error;
}

int file_guard_init(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction before;

    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &before) < 0)
        return -errno;
    if (before.sa_sigaction != on_bus_error)
        guard.before = before;
    return 0;
}

static struct guarded *find_start_locked(uint64_t start)
{
    struct guarded *entry = atomic_load(&guard.first);

    while (entry && !(atomic_load(&entry->start) == start && atomic_load(&entry->size)))
        entry = entry->next;
    return entry;
}

static struct guarded *find_unused_locked(void)
{
    struct guarded *entry = atomic_load(&guard.first);

    while (entry && atomic_load(&entry->size))
        entry = entry->next;
    return entry;
}

/* Partner: find_guarded(). */
static struct guarded *publish_locked(void)
{
    struct guarded *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->next = atomic_load(&guard.first);
    atomic_store_explicit(&guard.first, entry, memory_order_release);
    return entry;
}

/* Partner: contains(). */
static void add_locked(struct guarded *entry, uint64_t start, uint64_t size)
{
    atomic_store(&entry->was_cut, false);
    atomic_store_explicit(&entry->start, start, memory_order_relaxed);
    atomic_store_explicit(&entry->size, size, memory_order_release);
}

int file_guard_add(uint64_t start, uint64_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&guard.lock);
    struct guarded *entry = find_unused_locked();

    if (!entry)
        entry = publish_locked();
    if (!entry)
        return -ENOMEM;
    add_locked(entry, start, size);
    return 0;
}

bool file_guard_remove(uint64_t start)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&guard.lock);
    struct guarded *entry = find_start_locked(start);

    if (!entry)
        return false;
    atomic_store(&entry->size, 0);
    return atomic_load(&entry->was_cut);
}
