/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format is a sequence of steps. A step is text and a conversion, and makes one write; the last
 * step is text alone. An empty string without text before it makes no write.
 */
#include "format_match.h"

#include <string.h>

/* Bounds the tries, because the end of a string conversion may be ambiguous. */
#define TRIES_MAX 64u

struct step {
    const char *text;
    size_t length;
    char letter;      /* of the conversion; 0 at the end */
    const char *next; /* the rest of the format */
};

static struct step read_step(const char *format)
{
    struct step step = {.text = format, .length = strcspn(format, "%")};
    const char *at = format + step.length;

    if (*at == '%') {
        at += 1 + strspn(at + 1, "-+ #0123456789.*hlLqjzt");
        step.letter = *at;
    }
    step.next = *at ? at + 1 : at;
    return step;
}

/* The characters that a conversion may print; NULL = all. */
static const char *characters_of(char letter)
{
    switch (letter) {
    case 'd':
    case 'i':
    case 'u':
        return " +-0123456789";
    case 'o':
    case 'x':
    case 'X':
        return " 0123456789abcdefxABCDEFX";
    case 'e':
    case 'f':
    case 'g':
    case 'a':
    case 'E':
    case 'F':
    case 'G':
    case 'A':
    case 'p':
        return " +-.()0123456789abcdefinlpxABCDEFINPX";
    case '%':
        return "%";
    default:
        return NULL;
    }
}

static bool is_result_of(char letter, const char *text, size_t size)
{
    const char *characters = characters_of(letter);

    if (!characters)
        return true;
    for (size_t i = 0; i < size; i++) {
        if (!text[i] || !strchr(characters, text[i]))
            return false;
    }
    return size > 0;
}

/* Whether the step may have made this write. */
static bool explains(const struct step *step, const char *text, size_t size)
{
    if (size < step->length || memcmp(text, step->text, step->length) != 0)
        return false;
    if (!step->letter)
        return size == step->length;
    return is_result_of(step->letter, text + step->length, size - step->length);
}

static size_t match(const char *format, const struct driver_writes *writes, size_t at,
                    unsigned *tries)
{
    while (*format) {
        const struct step step = read_step(format);
        bool may_be_none = step.letter && !step.length && !characters_of(step.letter);
        size_t size, next, end = 0;
        const char *text;

        if (at == writes->size)
            return may_be_none ? match(step.next, writes, at, tries) : 0;
        next = driver_writes_next(writes, at, &text, &size);
        if (may_be_none && ++*tries < TRIES_MAX)
            end = match(step.next, writes, at, tries);
        if (!explains(&step, text, size))
            return end;
        if (may_be_none && *tries < TRIES_MAX) {
            size_t longer = match(step.next, writes, next, tries);
            return longer > end ? longer : end;
        }
        format = step.next;
        at = next;
    }
    return at;
}

size_t format_match(const char *format, const struct driver_writes *writes, size_t at)
{
    unsigned tries = 0;
    size_t size;
    const char *text;

    driver_writes_next(writes, at, &text, &size);
    if (*format != '%' && *format != *text)
        return 0;
    size_t end = match(format, writes, at, &tries);

    return end > at ? end : 0;
}
