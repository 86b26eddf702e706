/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages at addresses that another process has chosen. Several variables may share a page, which is
 * unmapped with the last of them. Not locked.
 */
#pragma once

#include <stdint.h>

#include "ranges.h"

/* All zero: no pages are taken. */
struct managed_pages {
    struct ranges areas; /* mapped together; the value counts the users */
    /* Puts other memory at an area that has just been mapped: 0 or -errno. And the end of that,
     * before the area is unmapped. NULL: it stays zeroed private memory. */
    int (*fill)(uint64_t start, uint64_t size);
    void (*empty)(uint64_t start, uint64_t size);
};

/* Maps all pages of a range: 0; -EEXIST when something else is there; -errno. Pages that are here
 * already keep their contents. */
int managed_pages_take(struct managed_pages *pages, uint64_t address, uint64_t size);

/* Gives back a range that was taken. */
void managed_pages_give(struct managed_pages *pages, uint64_t address, uint64_t size);
