/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts other pages under a range of the program's addresses, with the same contents. No write of
 * another thread is lost meanwhile. Either there is no other thread, or the range is read-only, or
 * the kernel (userfaultfd) or a handler of SIGSEGV (write_guard.h) holds the writers back.
 */
#pragma once

#include "page_map.h"

/* The areas become those of a memory file, whose first byte goes to address `first` and is also
 * mapped at `window`. Returns 0, or -errno. -EOPNOTSUPP: writers could not be held back, or the
 * caller's own stack is in an area. Whatever fails leaves the memory as it was. */
int pages_share(const struct page_area *areas, unsigned count, uint64_t first, int fd,
                void *window);

/* Areas of such a file become the program's alone again. After that its contents do not matter any
 * more. 0 or -errno. */
int pages_unshare(const struct page_area *areas, unsigned count, uint64_t first, int fd);
