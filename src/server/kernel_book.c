/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book: an array in the order of entry and a map by name. The kernels in it never move.
 */
#include "kernel_book.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "code.h"

void kernel_book_init(struct kernel_book *book)
{
    *book = (struct kernel_book){0};
    pthread_mutex_init(&book->lock, NULL);
}

void kernel_book_fini(struct kernel_book *book)
{
    for (uint32_t i = 0; i < book->count; i++)
        free(book->kernels[i]);
    free(book->kernels);
    map_fini(&book->by_name);
    pthread_mutex_destroy(&book->lock);
}

static uint64_t hash_name(const char *name)
{
    return code_hash(name, strlen(name));
}

/* Names of one hash have keys that follow each other. */
static struct known_kernel *find_locked(const struct kernel_book *book, const char *name,
                                        uint64_t *ret_key)
{
    struct known_kernel *kernel;
    uint64_t key = hash_name(name);

    while ((kernel = map_get(&book->by_name, key)) && strcmp(kernel->facts.name, name) != 0)
        key++;
    *ret_key = key;
    return kernel;
}

const struct known_kernel *kernel_book_find(struct kernel_book *book, const char *name)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&book->lock);
    uint64_t key;

    return find_locked(book, name, &key);
}

const struct known_kernel *kernel_book_number(struct kernel_book *book, uint32_t number)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&book->lock);

    return number < book->count ? book->kernels[number] : NULL;
}

/* Layout and name behind it. */
static struct known_kernel *copy_kernel(const struct known_kernel *kernel, uint32_t number)
{
    size_t layout_size = kernel->facts.param_count * 8ull;
    size_t name_size = strlen(kernel->facts.name) + 1;
    struct known_kernel *copy = malloc(sizeof(*copy) + layout_size + name_size);

    if (!copy)
        return NULL;
    *copy = *kernel;
    copy->facts.number = number;
    copy->facts.layout = (void *)(copy + 1);
    copy->facts.name = (char *)(copy + 1) + layout_size;
    memcpy(copy + 1, kernel->facts.layout, layout_size);
    memcpy((char *)(copy + 1) + layout_size, kernel->facts.name, name_size);
    return copy;
}

static bool grow_locked(struct kernel_book *book)
{
    uint32_t capacity = book->capacity ? 2 * book->capacity : 16;

    if (book->count < book->capacity)
        return true;
    struct known_kernel **kernels =
        realloc(book->kernels, capacity * sizeof(struct known_kernel *));
    if (!kernels)
        return false;
    book->kernels = kernels;
    book->capacity = capacity;
    return true;
}

const struct known_kernel *kernel_book_add(struct kernel_book *book,
                                           const struct known_kernel *kernel)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&book->lock);
    uint64_t key;
    struct known_kernel *known = find_locked(book, kernel->facts.name, &key);

    if (known)
        return known;
    known = grow_locked(book) ? copy_kernel(kernel, book->count) : NULL;
    if (!known || map_put(&book->by_name, key, known)) {
        free(known);
        return NULL;
    }
    book->kernels[book->count++] = known;
    return known;
}

size_t kernel_book_write(struct kernel_book *book, uint32_t first, void *target, size_t capacity,
                         uint32_t *ret_next)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&book->lock);
    size_t used = 0;

    *ret_next = first;
    for (; *ret_next < book->count; ++*ret_next) {
        const struct kernel_facts *facts = &book->kernels[*ret_next]->facts;
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
