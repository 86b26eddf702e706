/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory map of this process (/proc/self/maps). Nothing is allocated, so a child of fork may
 * read it, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses that were mapped together. */
struct page_area {
    uint64_t start, size;
    int protection;                 /* PROT_... */
    bool shared;                    /* other processes may see the program's writes */
    bool special;                   /* a stack, or memory of the kernel such as [vdso] */
    uint64_t device, inode, offset; /* of the file; inode 0: no file */
};

/* The areas in [start, end), cut to it and in order: 0; -E2BIG when there are more than `capacity`;
 * -errno. */
int page_map_read(uint64_t start, uint64_t end, struct page_area *areas, unsigned capacity,
                  unsigned *ret_count);

/* The whole area at `address`, which may begin before it. 0; -ENOENT where there is none; -errno.
 */
int page_map_find(uint64_t address, struct page_area *ret_area);

/* The name of the file that is mapped at `address`, as it was when it was opened, with \012 for a
 * line break. 0. -ENOENT: there is none. -ENAMETOOLONG, or -errno. */
int page_map_name(uint64_t address, char *ret_name, size_t size);

/* Parses one line of that file: false when it is not such a line. ret_area is the whole area. */
bool page_map_parse(const char *line, struct page_area *ret_area);

/* Whether the areas leave no hole in [start, end). */
bool page_map_fills(const struct page_area *areas, unsigned count, uint64_t start, uint64_t end);

/* How many threads this process has: 0 when that cannot be found out. */
unsigned page_map_threads(void);
