/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First it is found out which parts a driver would take: the newest machine code that the device
 * runs, else the newest text. The other parts may have other variables. Of a bundle it is not known
 * what a driver would take, for it links.
 */
#include "image_names.h"

#include <stdlib.h>
#include <string.h>

#include "image_bundle.h"

struct choice {
    unsigned device_sm;
    enum image_kind kind;
    unsigned sm;
    bool found, complete;
    struct image_names *names;
};

bool image_names_add(struct image_names *names, const char *name, size_t length, uint64_t size,
                     bool constant)
{
    if (names->count == names->capacity) {
        uint32_t capacity = names->capacity ? 2 * names->capacity : 32;
        struct image_name *grown = realloc(names->names, capacity * sizeof(*grown));

        if (!grown)
            return false;
        names->names = grown;
        names->capacity = capacity;
    }
    char *copy = names->count < IMAGE_NAMES_MAX ? strndup(name, length) : NULL;
    if (!copy)
        return false;
    names->names[names->count++] = (struct image_name){copy, size, constant};
    return true;
}

/* ---- what no kernel writes to ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Texts of printf and assert, and tables of mathematical functions. */
static bool is_of_compiler(const char *name)
{
    return starts_with(name, "$str") || starts_with(name, "__unnamed_") ||
           starts_with(name, "__cudart_");
}

/* Function objects, tags and the like: names that programs may not declare anything under. */
static bool is_empty_object(const struct image_name *name)
{
    return name->size <= 1 && starts_with(name->name, "_ZN") &&
           (strstr(name->name, "4cuda3std") || strstr(name->name, "6thrust"));
}

bool image_names_are_constant(const struct image_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct image_name *name = &names->names[i];

        if (!name->constant && !is_of_compiler(name->name) && !is_empty_object(name))
            return false;
    }
    return true;
}

void image_names_fini(struct image_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->names[i].name);
    free(names->names);
    *names = (struct image_names){0};
}

/* ---- which parts ---- */

static bool device_runs(const struct choice *choice, const struct image_part *part)
{
    if (part->kind == IMAGE_ELF && part->sm)
        return part->sm / 10 == choice->device_sm / 10 && part->sm <= choice->device_sm;
    return part->sm <= choice->device_sm;
}

static bool is_better(const struct choice *choice, const struct image_part *part)
{
    if (!choice->found || part->kind != choice->kind)
        return !choice->found || part->kind == IMAGE_ELF;
    return part->sm > choice->sm;
}

/* Looks only: wants none. */
static bool choose(void *context, const struct image_part *part)
{
    struct choice *choice = context;

    if (device_runs(choice, part) && is_better(choice, part)) {
        choice->found = true;
        choice->kind = part->kind;
        choice->sm = part->sm;
    }
    return false;
}

/* ---- what is in them ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct image_name *)a)->name, ((const struct image_name *)b)->name);
}

/* Two variables of one name in one part: the driver would tell of one. */
static bool are_distinct(struct image_name *names, uint32_t count)
{
    qsort(names, count, sizeof(*names), compare);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0)
            return false;
    return true;
}

static bool is_chosen(void *context, const struct image_part *part)
{
    const struct choice *choice = context;

    return part->kind == choice->kind && part->sm == choice->sm;
}

static bool gather(void *context, const struct image_part *part)
{
    struct choice *choice = context;
    uint32_t before = choice->names->count;

    choice->complete = part->kind == IMAGE_ELF ? image_code_names(part, choice->names)
                                               : image_text_names(part, choice->names);
    if (choice->names->count)
        choice->complete = choice->complete && are_distinct(choice->names->names + before,
                                                            choice->names->count - before);
    return !choice->complete;
}

/* Several parts for one device are variants of the same code. */
static void merge(struct image_names *names)
{
    uint32_t kept = 0;

    qsort(names->names, names->count, sizeof(*names->names), compare);
    for (uint32_t i = 0; i < names->count; i++) {
        if (kept && strcmp(names->names[kept - 1].name, names->names[i].name) == 0)
            free(names->names[i].name);
        else
            names->names[kept++] = names->names[i];
    }
    names->count = kept;
}

bool image_names_read(const void *bytes, size_t size, unsigned sm, struct image_names *ret_names)
{
    struct image_names names = {0};
    struct choice choice = {.device_sm = sm, .names = &names};

    const struct image_visit look = {.wants = choose, .context = &choice};
    const struct image_visit read = {.wants = is_chosen, .test = gather, .context = &choice};

    if (!image_is_bundle(bytes, size) && !image_any_part(bytes, size, &look) && choice.found &&
        !image_any_part(bytes, size, &read) && choice.complete && names.count) {
        merge(&names);
        *ret_names = names;
        return true;
    }
    image_names_fini(&names);
    return false;
}
