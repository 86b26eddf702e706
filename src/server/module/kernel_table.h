/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the kernels of a library, in the order in which clients first asked for them. A
 * program asks for the same kernels at every start, so the answer to its first question tells it of
 * the others, too.
 *
 * All functions may be called from any thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "kernel_record.h"
#include "loader.h"
#include "map.h"

struct known_kernel {
    CUfunction driver;
    struct kernel_facts facts; /* its attributes are those before any client changed one */
    _Atomic int32_t carveout;  /* as a client has set it last; see function_prefer() */
    pthread_mutex_t raising;   /* held while a client raises one of the driver's bounds */
};

struct kernel_table {
    pthread_mutex_t lock;
    struct map by_name; /* hash of the name */
    struct known_kernel **kernels;
    uint32_t count, capacity;
};

/* The second frees all kernels, which no function refers to any more. */
void kernel_table_init(struct kernel_table *table);
void kernel_table_fini(struct kernel_table *table);

/* The kernel of this name or number; NULL when it is not known. A kernel stays in the table as long
 * as that exists, and its facts do not change. */
struct known_kernel *kernel_table_find(struct kernel_table *table, const char *name);
struct known_kernel *kernel_table_get(struct kernel_table *table, uint32_t number);

/* Adds a copy of a kernel, unless it is there already, and gives it its number. NULL when out of
 * memory. */
struct known_kernel *kernel_table_add(struct kernel_table *table,
                                      const struct known_kernel *kernel);

/* Writes records of the kernels from number `first` on, as many as fit into `capacity` bytes.
 * Returns the size of what was written; `ret_next` is the first kernel that was not. */
size_t kernel_table_write(struct kernel_table *table, uint32_t first, void *target, size_t capacity,
                          uint32_t *ret_next);

/* How many kernels there are; and their names, in that order, each with its NUL, for the caller to
 * free. NULL when out of memory. */
uint32_t kernel_table_count(struct kernel_table *table);
char *kernel_table_names(struct kernel_table *table, uint32_t *ret_count, size_t *ret_size);
