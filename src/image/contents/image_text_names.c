/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of PTX text: "{.visible} .global {.align N} {.v2} .type name{[size]} {= ...};". What
 * does not look like that makes all of it unknown; the size alone may stay unknown.
 */
#include <ctype.h>
#include <string.h>

#include "image_names.h"

/* The text is followed to its end and no further. */
struct cursor {
    const char *next, *end;
};

static bool is_over(const struct cursor *cursor)
{
    return cursor->next == cursor->end;
}

static void skip_blanks(struct cursor *cursor)
{
    while (!is_over(cursor) && isspace((unsigned char)*cursor->next))
        cursor->next++;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Letters, digits and what else names are made of; 0 when there are none. */
static size_t take_word(struct cursor *cursor, const char **ret_word)
{
    *ret_word = cursor->next;
    while (!is_over(cursor) && is_word(*cursor->next))
        cursor->next++;
    return (size_t)(cursor->next - *ret_word);
}

static bool is(const char *word, size_t length, const char *what)
{
    return length == strlen(what) && memcmp(word, what, length) == 0;
}

/* Decimal digits, and nothing behind them; 0 where it is anything else, or too much. */
static uint64_t number_of(const char *word, size_t length)
{
    uint64_t number = 0;

    if (length > 15)
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)word[i]))
            return 0;
        number = 10 * number + (uint64_t)(word[i] - '0');
    }
    return number;
}

/* ".u32" is 4 bytes, ".v2" twice what follows, ".f16x2" unknown; what else there is says nothing.
 */
static void take_size(const char *word, size_t length, uint64_t *size)
{
    uint64_t number = length > 1 ? number_of(word + 1, length - 1) : 0;

    if (word[0] == 'v' && number)
        *size *= number;
    else if (strchr("bsuf", word[0]) && number)
        *size *= number / 8;
    else if (strchr("bsuf", word[0]) && length > 1 && isdigit((unsigned char)word[1]))
        *size = 0;
}

/* One directive between the space and the name; `.attribute` says that it is no plain variable. */
static bool take_directive(struct cursor *cursor, uint64_t *size)
{
    const char *word;

    cursor->next++;
    size_t length = take_word(cursor, &word);
    if (!length || is(word, length, "attribute") || is(word, length, "texref") ||
        is(word, length, "samplerref") || is(word, length, "surfref"))
        return false;
    if (!is(word, length, "align")) {
        take_size(word, length, size);
        return true;
    }
    skip_blanks(cursor);
    return take_word(cursor, &word) > 0;
}

static uint64_t dimension(const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (from < to && isspace((unsigned char)to[-1]))
        to--;
    return number_of(from, (size_t)(to - from));
}

/* Behind the name comes a size, a value or the end; anything else may be a second name. */
static bool ends_well(struct cursor *cursor, uint64_t *size)
{
    skip_blanks(cursor);
    while (!is_over(cursor) && *cursor->next == '[') {
        const char *close = memchr(cursor->next, ']', (size_t)(cursor->end - cursor->next));

        if (!close)
            return false;
        if (__builtin_mul_overflow(*size, dimension(cursor->next + 1, close), size))
            return false;
        cursor->next = close + 1;
        skip_blanks(cursor);
    }
    return !is_over(cursor) && (*cursor->next == ';' || *cursor->next == '=');
}

static bool read_declaration(struct cursor *cursor, bool constant, struct image_names *names)
{
    uint64_t size = 1;
    const char *word;

    skip_blanks(cursor);
    while (!is_over(cursor) && *cursor->next == '.') {
        if (!take_directive(cursor, &size))
            return false;
        skip_blanks(cursor);
    }
    size_t length = take_word(cursor, &word);
    return length && ends_well(cursor, &size) &&
           image_names_add(names, word, length, size, constant);
}

/* A space is named behind a blank where a variable is declared, and behind a name or a dot in an
 * instruction: "ld.global". */
static bool read_declarations(const struct image_part *part, const char *space,
                              struct image_names *names)
{
    bool constant = strcmp(space, ".const") == 0;
    const char *start = part->bytes;
    struct cursor cursor = {start, start + part->size};
    size_t length = strlen(space);

    for (;;) {
        const char *found = memmem(cursor.next, (size_t)(cursor.end - cursor.next), space, length);

        if (!found)
            return true;
        cursor.next = found + length;
        if (found > start && isalnum((unsigned char)found[-1]))
            continue;
        if (!read_declaration(&cursor, constant, names))
            return false;
    }
}

bool image_text_names(const struct image_part *part, struct image_names *names)
{
    return !memmem(part->bytes, part->size, ".tex", 4) &&
           !memmem(part->bytes, part->size, ".surf", 5) &&
           read_declarations(part, ".global", names) && read_declarations(part, ".const", names);
}
