/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in PTX: a function whose body contains the name of another function may call it. A body
 * stands between braces, behind ".entry name(...)" or ".func (...) name(...)".
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "image_callers.h"

struct function {
    const char *name, *body, *end; /* of the body */
    size_t length;                 /* of the name */
    bool is_kernel;
    unsigned uses;
};

struct functions {
    struct function *each;
    size_t count, capacity;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* The next word: NULL when there is none. */
static const char *next_word(const char *at, const char *end, size_t *ret_length)
{
    while (at < end && !is_word(*at))
        at++;
    const char *word = at;
    while (at < end && is_word(*at))
        at++;
    *ret_length = (size_t)(at - word);
    return *ret_length ? word : NULL;
}

static bool is(const char *word, size_t length, const char *what)
{
    return length == strlen(what) && !memcmp(word, what, length);
}

/* The position behind a parenthesis at `at`, if there is one. */
static const char *skip_parenthesis(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    if (at == end || *at != '(')
        return at;
    const char *close = memchr(at, ')', (size_t)(end - at));
    return close ? close + 1 : end;
}

static const char *end_of_body(const char *open, const char *end)
{
    unsigned depth = 0;

    for (const char *at = open; at < end; at++) {
        depth += *at == '{';
        if (*at == '}' && --depth == 0)
            return at;
    }
    return end;
}

static bool add_function(struct functions *functions, const struct function *function)
{
    if (functions->count == functions->capacity) {
        size_t capacity = functions->capacity ? 2 * functions->capacity : 64;
        struct function *each = realloc(functions->each, capacity * sizeof(*each));

        if (!each)
            return false;
        functions->each = each;
        functions->capacity = capacity;
    }
    functions->each[functions->count++] = *function;
    return true;
}

/* Reads one declaration behind its directive; skips one without a body. */
static bool read_function(struct functions *functions, const char **at, const char *end,
                          bool is_kernel)
{
    struct function function = {.is_kernel = is_kernel};
    const char *from = is_kernel ? *at : skip_parenthesis(*at, end);

    function.name = next_word(from, end, &function.length);
    if (!function.name)
        return true;
    *at = function.name + function.length;
    while (*at < end && **at != '{' && **at != ';')
        ++*at;
    if (*at == end || **at == ';')
        return true;
    function.body = *at;
    *at = function.end = end_of_body(*at, end);
    return add_function(functions, &function);
}

static bool read_functions(struct functions *functions, const char *at, const char *end)
{
    const char *word;
    size_t length;

    while ((word = next_word(at, end, &length))) {
        bool is_kernel = is(word, length, ".entry");

        at = word + length;
        if ((is_kernel || is(word, length, ".func")) &&
            !read_function(functions, &at, end, is_kernel))
            return false;
    }
    return true;
}

static int compare_calls(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->name, y->name, shorter);

    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static unsigned uses_of_word(const struct functions *functions, const char *word, size_t length)
{
    const struct function key = {.name = word, .length = length};
    const struct function *found =
        bsearch(&key, functions->each, functions->count, sizeof(*functions->each), compare_calls);

    if (is(word, length, ".callprototype")) /* a call through a pointer */
        return IMAGE_USES_UNKNOWN;
    return found ? found->uses : image_uses_of(word, length);
}

static unsigned uses_of_body(const struct functions *functions, const struct function *function)
{
    const char *at = function->body, *word;
    unsigned uses = 0;
    size_t length;

    while ((word = next_word(at, function->end, &length))) {
        uses |= uses_of_word(functions, word, length);
        at = word + length;
    }
    return uses;
}

/* Propagates the uses of each function to its callers until nothing changes. */
static void follow_calls(struct functions *functions)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < functions->count; i++) {
            unsigned uses = uses_of_body(functions, &functions->each[i]);

            changed |= uses != functions->each[i].uses;
            functions->each[i].uses = uses;
        }
    }
}

static bool add_kernels(const struct functions *functions, struct image_names *callers)
{
    for (size_t i = 0; i < functions->count; i++) {
        const struct function *function = &functions->each[i];

        if (function->is_kernel && function->uses &&
            !image_names_add(callers, function->name, function->length, function->uses, false))
            return false;
    }
    return true;
}

bool image_ptx_callers(const struct image_part *part, struct image_names *callers)
{
    const char *ptx = part->bytes;
    struct functions functions = {0};
    bool complete = read_functions(&functions, ptx, ptx + part->size);

    if (complete && functions.count) {
        qsort(functions.each, functions.count, sizeof(*functions.each), compare_calls);
        follow_calls(&functions);
        complete = add_kernels(&functions, callers);
    }
    free(functions.each);
    return complete;
}
