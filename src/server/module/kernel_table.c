/* SPDX-License-Identifier: Apache-2.0 */
/* An array in the order of entry and a map by name. The kernels in it never move. */
#include "kernel_table.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hash.h"

void kernel_table_init(struct kernel_table *table)
{
    *table = (struct kernel_table){0};
    pthread_mutex_init(&table->lock, NULL);
}

static void free_kernel(struct known_kernel *kernel)
{
    pthread_mutex_destroy(&kernel->raising);
    free(kernel);
}

void kernel_table_fini(struct kernel_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        free_kernel(table->kernels[i]);
    free(table->kernels);
    map_fini(&table->by_name);
    pthread_mutex_destroy(&table->lock);
}

/* Names with the same hash have consecutive keys. */
static struct known_kernel *find_locked(const struct kernel_table *table, const char *name,
                                        uint64_t *ret_key)
{
    struct known_kernel *kernel;
    uint64_t key = hash_bytes(name, strlen(name));

    while ((kernel = map_get(&table->by_name, key)) && strcmp(kernel->facts.name, name) != 0)
        key++;
    *ret_key = key;
    return kernel;
}

struct known_kernel *kernel_table_find(struct kernel_table *table, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);
    uint64_t key;

    return find_locked(table, name, &key);
}

struct known_kernel *kernel_table_get(struct kernel_table *table, uint32_t number)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);

    return number < table->count ? table->kernels[number] : NULL;
}

/* The layout and the name stand behind the copy. */
static struct known_kernel *copy_kernel(const struct known_kernel *kernel, uint32_t number)
{
    size_t layout_size = kernel->facts.param_count * 8ull;
    size_t name_size = strlen(kernel->facts.name) + 1;
    struct known_kernel *copy = malloc(sizeof(*copy) + layout_size + name_size);

    if (!copy)
        return NULL;
    copy->driver = kernel->driver;
    copy->facts = kernel->facts;
    atomic_init(&copy->carveout, kernel->carveout);
    pthread_mutex_init(&copy->raising, NULL);
    copy->facts.number = number;
    copy->facts.layout = (void *)(copy + 1);
    copy->facts.name = (char *)(copy + 1) + layout_size;
    memcpy(copy + 1, kernel->facts.layout, layout_size);
    memcpy((char *)(copy + 1) + layout_size, kernel->facts.name, name_size);
    return copy;
}

static bool grow_locked(struct kernel_table *table)
{
    uint32_t capacity = table->capacity ? 2 * table->capacity : 16;

    if (table->count < table->capacity)
        return true;
    struct known_kernel **kernels =
        realloc(table->kernels, capacity * sizeof(struct known_kernel *));
    if (!kernels)
        return false;
    table->kernels = kernels;
    table->capacity = capacity;
    return true;
}

struct known_kernel *kernel_table_add(struct kernel_table *table, const struct known_kernel *kernel)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);
    uint64_t key;
    struct known_kernel *known = find_locked(table, kernel->facts.name, &key);

    if (known)
        return known;
    known = grow_locked(table) ? copy_kernel(kernel, table->count) : NULL;
    if (!known)
        return NULL;
    if (map_put(&table->by_name, key, known)) {
        free_kernel(known);
        return NULL;
    }
    table->kernels[table->count++] = known;
    return known;
}

size_t kernel_table_write(struct kernel_table *table, uint32_t first, void *target, size_t capacity,
                          uint32_t *ret_next)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);
    size_t used = 0;

    *ret_next = first;
    for (; *ret_next < table->count; ++*ret_next) {
        const struct kernel_facts *facts = &table->kernels[*ret_next]->facts;
        size_t size = kernel_record_size(facts);
        if (size > KERNEL_RECORD_MAX)
            continue;
        if (size > capacity - used)
            break;
        kernel_record_write(facts, (char *)target + used);
        used += size;
    }
    return used;
}

uint32_t kernel_table_count(struct kernel_table *table)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);

    return table->count;
}

static size_t names_size_locked(const struct kernel_table *table)
{
    size_t size = 0;

    for (uint32_t i = 0; i < table->count; i++)
        size += strlen(table->kernels[i]->facts.name) + 1;
    return size;
}

char *kernel_table_names(struct kernel_table *table, uint32_t *ret_count, size_t *ret_size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table->lock);
    char *names = malloc(names_size_locked(table) + 1), *next = names;

    for (uint32_t i = 0; names && i < table->count; i++)
        next = stpcpy(next, table->kernels[i]->facts.name) + 1;
    *ret_count = table->count;
    *ret_size = (size_t)(next - names);
    return names;
}
