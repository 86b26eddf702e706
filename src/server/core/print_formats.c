/* SPDX-License-Identifier: Apache-2.0 */
#include "print_formats.h"

#include <stdlib.h>
#include <string.h>

struct print_formats *print_formats_create(const char *texts, size_t size)
{
    struct print_formats *formats = malloc(sizeof(*formats) + size);

    if (!formats)
        return NULL;
    formats->users = 1;
    formats->size = size;
    if (size)
        memcpy(formats->texts, texts, size);
    return formats;
}

/* Partner of the following: each other. */
struct print_formats *print_formats_ref(struct print_formats *formats)
{
    if (formats)
        atomic_fetch_add_explicit(&formats->users, 1, memory_order_relaxed);
    return formats;
}

void print_formats_unref(struct print_formats *formats)
{
    if (formats && atomic_fetch_sub_explicit(&formats->users, 1, memory_order_acq_rel) == 1)
        free(formats);
}

bool print_format_set_has(const struct print_format_set *set, const struct print_formats *formats)
{
    if (!formats)
        return set->has_unknown;
    for (unsigned i = 0; i < set->count; i++) {
        if (set->each[i] == formats)
            return true;
    }
    return false;
}

static bool reserve(struct print_format_set *set)
{
    unsigned capacity = set->capacity ? 2 * set->capacity : 4;

    if (set->count < set->capacity)
        return true;
    if (capacity > PRINT_FORMAT_SETS_MAX)
        return false;
    struct print_formats **each = realloc(set->each, capacity * sizeof(*each));
    if (!each)
        return false;
    set->each = each;
    set->capacity = capacity;
    return true;
}

void print_format_set_add(struct print_format_set *set, struct print_formats *formats)
{
    if (print_format_set_has(set, formats))
        return;
    if (formats && reserve(set))
        set->each[set->count++] = print_formats_ref(formats);
    else
        set->has_unknown = true;
}

void print_format_set_fini(struct print_format_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        print_formats_unref(set->each[i]);
    free(set->each);
    *set = (struct print_format_set){0};
}
