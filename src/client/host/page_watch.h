/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of shared memory that the program may access only after they have been shown to it. Before
 * that, a page fault lets the thread sleep, and a descriptor (userfaultfd) tells its address. The
 * memory is mapped a second time, without such a watch, for the threads that update its contents.
 *
 * Addresses and sizes are whole pages. Functions may be called from any thread; hiding and showing
 * the same pages at the same time is the caller's to prevent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct page_fault {
    uint64_t address; /* of the page */
    int thread;       /* of the page fault, as the kernel numbers threads */
    bool writes;      /* the thread wants to write, so it needs pages that are writable */
};

/* Options of page_watch_open(), and of the watch that it has got. */
enum {
    /* Also what unprivileged processes get: then system calls on hidden pages fail with EFAULT,
     * rather than sleep as well. */
    WATCH_THREADS_ONLY = 1,
    /* Pages are always shown writable: before Linux 5.19 there is nothing else, which is taken then
     * without being asked for. */
    WATCH_ALL_WRITABLE = 2,
};

/* A descriptor for all watched memory of the process, or -errno. By the system call, or by
 * /dev/userfaultfd where the process may open that. A process has one watch at a time. */
int page_watch_open(unsigned flags, unsigned *ret_got);

/* Watches a range, and stops that. Pages are hidden first, and shown afterwards, in so far as the
 * memory has them. 0 or -errno. */
int page_watch_add(int watch, uint64_t address, uint64_t size);
void page_watch_remove(int watch, uint64_t address, uint64_t size);

/* Waits for a page fault in hidden pages: 0, or -errno. Its thread sleeps until they are shown. */
int page_watch_next(int watch, struct page_fault *ret_fault);

/* The same for so many nanoseconds at most, less than a second: -EAGAIN when there is none. */
int page_watch_next_within(int watch, uint32_t ns, struct page_fault *ret_fault);

/* Shows pages, and wakes the threads that wait for them. Where the memory has no page yet it is
 * zero, which takes a call for each page. Read-only where that is possible and `writable` is not
 * set: true when the pages are writable now. */
bool page_watch_show(int watch, uint64_t address, uint64_t size, bool writable);

/* Makes pages writable that have been shown read-only, and wakes the threads that wait for them. */
void page_watch_allow_writes(int watch, uint64_t address, uint64_t size);

/* Wakes the threads that wait for hidden pages: they repeat their page faults. */
void page_watch_wake(int watch, uint64_t address, uint64_t size);

/* Ends a page fault by SIGSEGV in its thread, as if nothing were there. False when that is not
 * possible. */
bool page_watch_refuse(int watch, const struct page_fault *fault);

/* Hides pages. The memory has all earlier writes to them. */
void page_watch_hide(uint64_t address, uint64_t size);
