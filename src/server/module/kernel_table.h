/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the kernels of a library, in the order in which clients first looked them up. A
 * program uses the same kernels at every start, so the first reply includes the others (kernel
 * prefetch).
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
    pthread_mutex_t raising;   /* locked while a client raises one of the driver's bounds */
};

struct kernel_table {
    pthread_mutex_t lock;
    struct map by_name; /* hash of the name */
    struct known_kernel **kernels;
    uint32_t count, capacity;
};

/* The second frees all kernels. No function refers to them any more. */
void kernel_table_init(struct kernel_table *table);
void kernel_table_fini(struct kernel_table *table);

/* The kernel of this name or number; NULL when it is unknown. A kernel stays for the life of the
 * table, and its facts do not change. */
struct known_kernel *kernel_table_find(struct kernel_table *table, const char *name);
struct known_kernel *kernel_table_get(struct kernel_table *table, uint32_t number);

/* Adds a copy of a kernel with a new number, or returns the cached one. NULL when out of memory. */
struct known_kernel *kernel_table_add(struct kernel_table *table,
                                      const struct known_kernel *kernel);

/* Writes records of the kernels from number `first` on, as many as fit into `capacity` bytes.
 * Returns the bytes written; `ret_next` is the first kernel that did not fit. */
size_t kernel_table_write(struct kernel_table *table, uint32_t first, void *target, size_t capacity,
                          uint32_t *ret_next);

/* The number of kernels; and their names, in that order, each with its NUL. The caller frees the
 * names; NULL when out of memory. */
uint32_t kernel_table_count(struct kernel_table *table);
char *kernel_table_names(struct kernel_table *table, uint32_t *ret_count, size_t *ret_size);
