/* SPDX-License-Identifier: Apache-2.0 */
/* Short strings in fixed arrays. Nothing here reads or writes past the size it was given. */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_copy(char *target, size_t capacity, const char *source)
{
    if (capacity == 0)
        return false;
    size_t length = strnlen(source, capacity);
    bool fits = length < capacity;
    if (!fits)
        length = capacity - 1;
    memcpy(target, source, length);
    target[length] = '\0';
    return fits;
}

bool text_format(char *target, size_t capacity, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(target, capacity, format, arguments);
    va_end(arguments);
    return wanted >= 0 && (size_t)wanted < capacity;
}

bool text_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

bool text_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

int text_to_u64(const char *text, uint64_t *ret_value)
{
    if (*text < '0' || *text > '9')
        return -EINVAL; /* strtoull would take blanks and signs */
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    if (strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") == 0)
        return -EINVAL;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, hexadecimal ? 16 : 10);
    if (*end != '\0')
        return -EINVAL;
    if (errno == ERANGE)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

/* Bytes of the character of UTF-8 that begins there, and its number: 0 when there is none. */
static size_t take_character(const unsigned char *text, uint32_t *ret_number)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    uint32_t number = size == 1 ? text[0] : text[0] & (0x7fu >> size);

    if ((text[0] >= 0x80 && text[0] < 0xc0) || text[0] >= 0xf8)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        number = number << 6 | (text[i] & 0x3f);
    }
    *ret_number = number;
    return number >= least[size] && number < 0x110000 ? size : 0;
}

static bool is_printable(uint32_t number)
{
    bool is_control = number < 0x20 || (number >= 0x7f && number < 0xa0);
    bool turns = number == 0x61c || (number >= 0x200b && number <= 0x200f) ||
                 (number >= 0x2028 && number <= 0x202e) || (number >= 0x2060 && number <= 0x206f) ||
                 number == 0xfeff;

    return !is_control && !turns && (number < 0xd800 || number > 0xdfff);
}

/* A character that is more than one byte becomes that many '?'. */
void text_make_printable(char *text)
{
    while (*text) {
        uint32_t number = 0;
        size_t size = take_character((const unsigned char *)text, &number);

        if (!size || !is_printable(number))
            memset(text, '?', size ? size : 1);
        text += size ? size : 1;
    }
}

void text_make_printable_array(char *text, size_t capacity)
{
    text[capacity - 1] = '\0';
    text_make_printable(text);
}

/* The next newline or tab, or the end. */
static char *end_of_cell(char *text, const char *end)
{
    while (text < end && *text != '\n' && *text != '\t')
        text++;
    return text;
}

void text_make_lines_printable(char *text, size_t size)
{
    for (char *line = text, *end; line < text + size; line = end + 1) {
        end = end_of_cell(line, text + size);
        for (char *zero = line; (zero = memchr(zero, '\0', (size_t)(end - zero)));)
            *zero = '?';
        char after = *end;
        *end = '\0';
        text_make_printable(line);
        *end = after;
    }
}
