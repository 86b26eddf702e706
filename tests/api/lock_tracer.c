/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload. It writes a line for each place that takes a lock while its thread has
 * another one, with the place that took that: "FILE OFFSET FILE OFFSET". The file is that which
 * FUNNEL_TEST_LOCKS names. Then test_lock_order.py looks for orders that contradict each other.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define HELD_MAX 32
#define FRAMES_MAX 8
#define SEEN_MAX (1u << 16)

struct held {
    void *lock;
    uintptr_t place;
};

struct walk {
    uintptr_t places[FRAMES_MAX];
    int count;
};

typedef int lock_call(void *lock);

static __thread struct held held[HELD_MAX];
static __thread int held_count;
static __thread bool tracing; /* the unwinder takes locks as well */
static _Atomic uint64_t seen[SEEN_MAX];
static int edges = -1;

/* Before main(), and so before a server's sandbox. */
__attribute__((constructor)) static void open_edges(void)
{
    const char *path = getenv("FUNNEL_TEST_LOCKS");

    if (path)
        edges = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;

    if (walk->count == FRAMES_MAX)
        return _URC_END_OF_STACK;
    walk->places[walk->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

/* The first place outside of this file and of the lock functions that a server defines itself. */
static uintptr_t calling_place(void)
{
    struct walk walk = {.count = 0};
    Dl_info self, info;

    dladdr((void *)(uintptr_t)calling_place, &self);
    _Unwind_Backtrace(note_frame, &walk);
    for (int i = 0; i < walk.count; i++)
        if (!dladdr((void *)walk.places[i], &info) ||
            (info.dli_fbase != self.dli_fbase &&
             !(info.dli_sname && strncmp(info.dli_sname, "pthread_", 8) == 0)))
            return walk.places[i];
    return 0;
}

/* Whether this process has written the pair before. A table that is full forgets. */
static bool was_seen(uintptr_t outer, uintptr_t inner)
{
    uint64_t key = (outer * 31 + inner) * 0x9e3779b97f4a7c15ull | 1;
    uint64_t free_entry = 0;

    for (unsigned i = 0; i < 64; i++) {
        _Atomic uint64_t *entry = &seen[((key >> 40) + i) % SEEN_MAX];

        if (atomic_compare_exchange_strong(entry, &free_entry, key))
            return false;
        if (free_entry == key)
            return true;
        free_entry = 0;
    }
    return false;
}

static void write_edge(uintptr_t outer, uintptr_t inner)
{
    Dl_info first, second;
    char line[2048];
    int length;

    if (!dladdr((void *)outer, &first) || !dladdr((void *)inner, &second))
        return;
    length = snprintf(line, sizeof(line), "%s %zx %s %zx\n", first.dli_fname,
                      outer - (uintptr_t)first.dli_fbase, second.dli_fname,
                      inner - (uintptr_t)second.dli_fbase);
    if (length < (int)sizeof(line) && write(edges, line, (size_t)length) != length)
        edges = -1;
}

static void note_taken(void *lock)
{
    uintptr_t place;

    if (tracing || edges < 0 || held_count == HELD_MAX)
        return;
    tracing = true;
    place = calling_place();
    for (int i = 0; i < held_count; i++)
        if (!was_seen(held[i].place, place))
            write_edge(held[i].place, place);
    held[held_count++] = (struct held){lock, place};
    tracing = false;
}

static void note_given(void *lock)
{
    for (int i = held_count - 1; i >= 0; i--)
        if (held[i].lock == lock) {
            memmove(&held[i], &held[i + 1], (size_t)(--held_count - i) * sizeof(held[0]));
            return;
        }
}

static int call_libc(lock_call *_Atomic *known, const char *name, void *lock)
{
    lock_call *call = atomic_load_explicit(known, memory_order_relaxed);

    if (!call) {
        call = (lock_call *)dlsym(RTLD_NEXT, name);
        atomic_store_explicit(known, call, memory_order_relaxed);
    }
    return call(lock);
}

#define TAKES(name, type)                            \
    int name(type *lock)                             \
    {                                                \
        static lock_call *_Atomic known;             \
        int result = call_libc(&known, #name, lock); \
                                                     \
        if (result == 0)                             \
            note_taken(lock);                        \
        return result;                               \
    }

#define GIVES(name, type)                      \
    int name(type *lock)                       \
    {                                          \
        static lock_call *_Atomic known;       \
                                               \
        note_given(lock);                      \
        return call_libc(&known, #name, lock); \
    }

#pragma GCC visibility push(default)
TAKES(pthread_mutex_lock, pthread_mutex_t)
TAKES(pthread_mutex_trylock, pthread_mutex_t)
GIVES(pthread_mutex_unlock, pthread_mutex_t)
TAKES(pthread_rwlock_rdlock, pthread_rwlock_t)
TAKES(pthread_rwlock_tryrdlock, pthread_rwlock_t)
TAKES(pthread_rwlock_wrlock, pthread_rwlock_t)
TAKES(pthread_rwlock_trywrlock, pthread_rwlock_t)
GIVES(pthread_rwlock_unlock, pthread_rwlock_t)
#pragma GCC visibility pop
