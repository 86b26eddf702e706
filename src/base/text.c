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
