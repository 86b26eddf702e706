/* SPDX-License-Identifier: Apache-2.0 */
/* The list of names, and the meaning of variable names. */
#include "image_names.h"

#include <stdlib.h>
#include <string.h>

bool image_names_add_like(struct image_names *names, const struct image_name *like, size_t length)
{
    if (names->count == names->capacity) {
        uint32_t capacity = names->capacity ? 2 * names->capacity : 32;
        struct image_name *grown = realloc(names->names, capacity * sizeof(*grown));

        if (!grown)
            return false;
        names->names = grown;
        names->capacity = capacity;
    }
    char *copy = names->count < IMAGE_NAMES_MAX ? strndup(like->name, length) : NULL;
    if (!copy)
        return false;
    names->names[names->count] = *like;
    names->names[names->count++].name = copy;
    return true;
}

bool image_names_add(struct image_names *names, const char *name, size_t length, uint64_t size,
                     bool constant)
{
    const struct image_name like = {(char *)(uintptr_t)name, size, constant, false};

    return image_names_add_like(names, &like, length);
}

/* ---- what no kernel writes to ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Strings of printf and assert, and tables of mathematical functions. */
static bool is_of_compiler(const char *name)
{
    return starts_with(name, "$str") || starts_with(name, "__unnamed_") ||
           starts_with(name, "__cudart_");
}

/* Function objects, tags and the like, in namespaces that programs may not use. */
static bool is_empty_object(const struct image_name *name)
{
    return name->size <= 1 && starts_with(name->name, "_ZN") &&
           (strstr(name->name, "4cuda3std") || strstr(name->name, "4cuda2mr") ||
            strstr(name->name, "6thrust"));
}

/* A constant inside a function. The host cannot name it, so its value is fixed by the compiler. */
static bool is_local_constant(const struct image_name *name)
{
    return name->constant && starts_with(name->name, "_ZZ");
}

static bool is_fixed(const struct image_name *name)
{
    return is_of_compiler(name->name) || is_empty_object(name) || is_local_constant(name);
}

bool image_names_are_constant(const struct image_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (!names->names[i].constant && !is_fixed(&names->names[i]))
            return false;
    return true;
}

const char *image_names_first_variable(const struct image_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (!is_fixed(&names->names[i]))
            return names->names[i].name;
    return NULL;
}

void image_names_fini(struct image_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->names[i].name);
    free(names->names);
    *names = (struct image_names){0};
}

/* ---- of the parts ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct image_name *)a)->name, ((const struct image_name *)b)->name);
}

/* The driver would report only one of two variables with one name. */
static bool are_distinct(struct image_name *names, uint32_t count)
{
    qsort(names, count, sizeof(*names), compare_names);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0)
            return false;
    return true;
}

bool image_part_names(const struct image_part *part, struct image_names *names, uint64_t *ret_bytes)
{
    uint32_t before = names->count;
    bool complete = part->kind == IMAGE_ELF ? image_code_names(part, names, ret_bytes)
                                            : image_ptx_names(part, names, ret_bytes);

    return complete &&
           (!names->count || are_distinct(names->names + before, names->count - before));
}

void image_names_merge(struct image_names *names)
{
    uint32_t kept = 0;

    if (!names->count)
        return;
    qsort(names->names, names->count, sizeof(*names->names), compare_names);
    for (uint32_t i = 0; i < names->count; i++) {
        if (kept && strcmp(names->names[kept - 1].name, names->names[i].name) == 0) {
            names->names[kept - 1].relocated |= names->names[i].relocated;
            free(names->names[i].name);
        } else {
            names->names[kept++] = names->names[i];
        }
    }
    names->count = kept;
}
