/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds back the threads that write to certain pages where userfaultfd cannot. The pages are
 * read-only for a moment, and a handler of SIGSEGV lets a writing thread wait and write again.
 * System calls that write there fail with EFAULT meanwhile.
 */
#pragma once

#include "page_map.h"

/* Returns 0 or -errno. -EOPNOTSUPP: a thread blocks SIGSEGV, the program has put another handler in
 * the place of this one, or the processor is no x86-64. Waits while another thread is between the
 * two calls. Until the second the caller neither writes to the areas nor uses malloc(), and it has
 * blocked its signals, but SIGSEGV. */
int write_guard_begin(const struct page_area *areas, unsigned count);

/* The areas get the protection back that they had, and the writers go on. */
void write_guard_end(const struct page_area *areas, unsigned count);

/* Around a fork, which must not copy pages that are held back. The second is for both sides. */
void write_guard_before_fork(void);
void write_guard_after_fork(void);
