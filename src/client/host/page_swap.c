/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers are held back, the bytes are copied, and one system call replaces the old pages by the
 * new ones: other threads see either. Between the first step and the last one nothing but the copy
 * is written, because other data of this thread might lie in the range.
 */
#include "page_swap.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copy_team.h"
#include "fd.h"
#include "userfault.h"
#include "write_guard.h"

/* Constants that are newer than some headers. */
#define FEATURE_WP_SHARED_MEMORY (1ull << 12)
#define FEATURE_WP_UNPOPULATED (1ull << 13)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define TRIES 100

/* ---- holding writers back ---- */

struct guard {
    sigset_t signals;
    int userfault;   /* -1: no other thread can write, or the pages are read-only */
    bool by_signals; /* that is so by write_guard_begin() */
};

static bool is_writable(const struct page_area *area)
{
    return area->protection & PROT_WRITE;
}

static bool any_writable(const struct page_area *areas, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (is_writable(&areas[i]))
            return true;
    return false;
}

/* A thread must not hold itself back: its stack, and its errno. */
static bool is_of_this_thread(const struct page_area *area)
{
    uint64_t stack = (uintptr_t)__builtin_frame_address(0), own = (uintptr_t)&errno;

    return stack - area->start < area->size || own - area->start < area->size;
}

/* The helpers of large copies write only for a thread that waits for them. */
static bool is_only_thread(void)
{
    return page_map_threads() == 1 + copy_team_threads();
}

/* Without the privilege to hold back the kernel itself, a system call of another thread that writes
 * there fails with EFAULT instead of waiting. */
static int open_userfault(uint64_t features)
{
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    bool threads_only;
    int fd = userfault_open(true, &threads_only);

    if (fd < 0)
        return -EOPNOTSUPP;
    if (ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    fd_close(&fd);
    return -EOPNOTSUPP;
}

static int protect_area(int userfault, const struct page_area *area)
{
    struct uffdio_register watch = {.range = {area->start, area->size},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protect = {.range = watch.range,
                                          .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    int r;

    /* Older kernels protect only pages that are present. */
    madvise((void *)(uintptr_t)area->start, area->size, MADV_POPULATE_READ);
    if (ioctl(userfault, UFFDIO_REGISTER, &watch) < 0 ||
        !(watch.ioctls & 1ull << _UFFDIO_WRITEPROTECT))
        return -EOPNOTSUPP;
    for (int i = 0; i < TRIES; i++) {
        r = ioctl(userfault, UFFDIO_WRITEPROTECT, &protect) < 0 ? -errno : 0;
        if (r != -EAGAIN)
            break;
    }
    return r == 0 ? 0 : -EOPNOTSUPP;
}

static int hold_with_userfault(struct guard *guard, const struct page_area *areas, unsigned count)
{
    int r = 0;

    guard->userfault = open_userfault(UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_SHARED_MEMORY |
                                      FEATURE_WP_UNPOPULATED);
    if (guard->userfault < 0)
        guard->userfault = open_userfault(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
    if (guard->userfault < 0)
        return guard->userfault;
    for (unsigned i = 0; i < count && r == 0; i++)
        if (is_writable(&areas[i]))
            r = protect_area(guard->userfault, &areas[i]);
    return r;
}

/* Closing it lets the writers go on. */
static void let_writers_go(struct guard *guard, const struct page_area *areas, unsigned count)
{
    if (guard->userfault >= 0)
        fd_close(&guard->userfault);
    if (guard->by_signals)
        write_guard_end(areas, count);
    pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
}

/* For cases in which the kernel does not do it: in containers, and for mappings of files. */
static int hold_by_signals(struct guard *guard, const struct page_area *areas, unsigned count)
{
    int r;

    fd_close(&guard->userfault);
    r = write_guard_begin(areas, count);
    guard->by_signals = r == 0;
    return r;
}

/* A signal handler would be a writer on this thread, so signals are blocked. SIGSEGV is not, for
 * other threads that do this look which block it. */
static int hold_writers(struct guard *guard, const struct page_area *areas, unsigned count,
                        bool may_signal)
{
    sigset_t all;
    int r = 0;

    for (unsigned i = 0; i < count; i++)
        if (is_of_this_thread(&areas[i]))
            return -EOPNOTSUPP;
    *guard = (struct guard){.userfault = -1};
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &guard->signals);
    if (any_writable(areas, count) && !is_only_thread())
        r = hold_with_userfault(guard, areas, count);
    if (r < 0 && may_signal)
        r = hold_by_signals(guard, areas, count);
    if (r < 0)
        let_writers_go(guard, areas, count);
    return r;
}

/* ---- from the program's own pages to a memory file's ---- */

static int map_file(const struct page_area *area, int how, int fd, uint64_t offset)
{
    void *place = (void *)(uintptr_t)area->start;

    return mmap(place, area->size, area->protection, how | MAP_FIXED, fd, (off_t)offset) == place
               ? 0
               : -errno;
}

/* One call instead of a page fault for each page. */
static void populate(const struct page_area *area)
{
    madvise((void *)(uintptr_t)area->start, area->size,
            is_writable(area) ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

int pages_share(const struct page_area *areas, unsigned count, uint64_t first, int fd, void *window)
{
    struct guard guard;
    unsigned done = 0;
    int r = hold_writers(&guard, areas, count, true);

    if (r < 0)
        return r;
    for (unsigned i = 0; i < count; i++)
        memcpy((char *)window + (areas[i].start - first), (const void *)(uintptr_t)areas[i].start,
               areas[i].size);
    while (done < count && r == 0) {
        r = map_file(&areas[done], MAP_SHARED, fd, areas[done].start - first);
        done += r == 0;
    }
    let_writers_go(&guard, areas, count);
    if (r < 0) {
        pages_unshare(areas, done, first, fd);
        return r;
    }
    for (unsigned i = 0; i < count; i++)
        populate(&areas[i]);
    return 0;
}

/* ---- and back ---- */

/* New pages are filled elsewhere and moved to their place. */
static int move_in(const struct page_area *area)
{
    void *place = (void *)(uintptr_t)area->start;
    void *fresh =
        mmap(NULL, area->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fresh == MAP_FAILED)
        return -ENOMEM;
    memcpy(fresh, place, area->size);
    if (mprotect(fresh, area->size, area->protection) == 0 &&
        mremap(fresh, area->size, area->size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place)
        return 0;
    munmap(fresh, area->size);
    return -ENOMEM;
}

/* Writes the byte's own value back, atomically: the page becomes private to this process. If
 * another thread writes first, that has the same effect. */
static void dirty_page(volatile char *byte)
{
    char value = *byte;

    atomic_compare_exchange_strong_explicit((volatile _Atomic char *)byte, &value, value,
                                            memory_order_relaxed, memory_order_relaxed);
}

/* Works without holding writers back: the same pages are mapped so that every write makes a private
 * copy, and then each is written to. The one difference shows after MADV_DONTNEED: the pages then
 * hold the file's contents, not zeros. */
static int make_private(const struct page_area *area, int fd, uint64_t offset)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int r = map_file(area, MAP_PRIVATE, fd, offset);

    if (r == 0 && madvise((void *)(uintptr_t)area->start, area->size, MADV_POPULATE_WRITE) < 0)
        for (uint64_t at = 0; at < area->size; at += page)
            dirty_page((volatile char *)(uintptr_t)(area->start + at));
    return r;
}

int pages_unshare(const struct page_area *areas, unsigned count, uint64_t first, int fd)
{
    struct guard guard;
    bool held = hold_writers(&guard, areas, count, false) == 0;
    int r = 0;

    for (unsigned i = 0; i < count && r == 0; i++) {
        r = held || !is_writable(&areas[i]) ? move_in(&areas[i]) : -EOPNOTSUPP;
        if (r < 0 && is_writable(&areas[i]))
            r = make_private(&areas[i], fd, areas[i].start - first);
    }
    if (held)
        let_writers_go(&guard, areas, count);
    return r;
}
