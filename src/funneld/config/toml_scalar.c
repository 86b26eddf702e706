/* SPDX-License-Identifier: Apache-2.0 */
/* TOML's numbers, booleans, dates and times. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "toml_reader.h"
#include "toml_string.h"

#define NUMBER_MAX 512

/* ---- numbers ---- */

/* A letter of a hexadecimal number is one, too. */
static bool is_digit_at(const char *text, size_t at)
{
    unsigned char letter = (unsigned char)text[at];

    return text_starts_with(text, "0x") && at >= 2 ? isxdigit(letter) : isdigit(letter);
}

/* Removes _, each of which has to stand between two digits. */
static bool strip_underscores(const char *text, size_t length, char ret_text[NUMBER_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] != '_')
            ret_text[used++] = text[i];
        else if (i == 0 || !is_digit_at(text, i - 1) || !is_digit_at(text, i + 1))
            return false;
    }
    ret_text[used] = '\0';
    return true;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Digits without a 0 before others: how many, 0 when it is none. */
static size_t whole_part(const char *text)
{
    size_t digits = count_digits(text);

    return digits > 1 && *text == '0' ? 0 : digits;
}

static bool read_based(const char *text, char value[NUMBER_MAX])
{
    static const char *const digits[] = {"0123456789abcdefABCDEF", "01234567", "01"};
    static const int bases[] = {16, 8, 2};
    static const char letters[] = "xob";
    const char *letter = text[0] == '0' && text[1] ? strchr(letters, text[1]) : NULL;
    long which = letter ? letter - letters : -1;
    unsigned long long number;

    if (which < 0 || !text[2] || strspn(text + 2, digits[which]) != strlen(text + 2))
        return false;
    errno = 0;
    number = strtoull(text + 2, NULL, bases[which]);
    return !errno && number <= INT64_MAX && text_format(value, NUMBER_MAX, "%llu", number);
}

static bool read_integer(const char *text, char value[NUMBER_MAX])
{
    const char *number = text + (*text == '+' || *text == '-');

    if (!whole_part(number) || number[whole_part(number)])
        return false;
    errno = 0;
    return text_format(value, NUMBER_MAX, "%lld", strtoll(text, NULL, 10)) && !errno;
}

static bool read_float(const char *text, char value[NUMBER_MAX])
{
    const char *at = text + (*text == '+' || *text == '-');
    size_t digits = whole_part(at);

    text_copy(value, NUMBER_MAX, text);
    if (!strcmp(at, "inf") || !strcmp(at, "nan"))
        return true;
    if (!digits || !strpbrk(at, ".eE"))
        return false;
    at += digits;
    if (*at == '.') {
        digits = count_digits(++at);
        at += digits;
    }
    if (digits && (*at == 'e' || *at == 'E')) {
        at += 1 + (at[1] == '+' || at[1] == '-');
        digits = count_digits(at);
        at += digits;
    }
    return digits && !*at;
}

/* ---- dates and times ---- */

/* Two or four digits at `*at`, which moves on; -1 when there are fewer. */
static int read_digits(const char **at, int count)
{
    int value = 0;

    for (int i = 0; i < count; i++, ++*at) {
        if (!isdigit((unsigned char)**at))
            return -1;
        value = value * 10 + (**at - '0');
    }
    return value;
}

static bool skip(const char **at, char letter)
{
    bool there = **at == letter;

    *at += there;
    return there;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static bool read_date(const char **at)
{
    int year = read_digits(at, 4), month, day;

    if (year < 0 || !skip(at, '-'))
        return false;
    month = read_digits(at, 2);
    if (month < 1 || month > 12 || !skip(at, '-'))
        return false;
    day = read_digits(at, 2);
    return day >= 1 && day <= days_of(year, month);
}

/* "07:32"; as an offset, too. */
static bool read_hour_and_minute(const char **at)
{
    int hour = read_digits(at, 2), minute;

    if (hour < 0 || hour > 23 || !skip(at, ':'))
        return false;
    minute = read_digits(at, 2);
    return minute >= 0 && minute <= 59;
}

static bool read_time(const char **at)
{
    int second;
    size_t digits;

    if (!read_hour_and_minute(at) || !skip(at, ':'))
        return false;
    second = read_digits(at, 2);
    if (second < 0 || second > 60)
        return false;
    if (!skip(at, '.'))
        return true;
    digits = count_digits(*at);
    *at += digits;
    return digits > 0;
}

static bool read_offset(const char **at)
{
    if (skip(at, 'Z') || skip(at, 'z'))
        return true;
    return (skip(at, '+') || skip(at, '-')) && read_hour_and_minute(at);
}

static bool read_date_or_time(const char *text, enum toml_type *ret_type)
{
    const char *at = text;

    *ret_type = TOML_LOCAL_TIME;
    if (isdigit((unsigned char)text[0]) && isdigit((unsigned char)text[1]) && text[2] == ':')
        return read_time(&at) && !*at;
    *ret_type = TOML_LOCAL_DATE;
    if (!read_date(&at))
        return false;
    if (!*at)
        return true;
    *ret_type = TOML_LOCAL_DATE_TIME;
    if ((!skip(&at, 'T') && !skip(&at, 't') && !skip(&at, ' ')) || !read_time(&at))
        return false;
    if (!*at)
        return true;
    *ret_type = TOML_DATE_TIME;
    return read_offset(&at) && !*at;
}

/* ---- which of them ---- */

static bool read_number(const char *text, size_t length, enum toml_type *ret_type,
                        char value[NUMBER_MAX])
{
    char number[NUMBER_MAX];

    if (!strip_underscores(text, length, number))
        return false;
    *ret_type = TOML_INTEGER;
    if (read_based(number, value) || read_integer(number, value))
        return true;
    *ret_type = TOML_FLOAT;
    return read_float(number, value);
}

int toml_read_scalar(struct toml_reader *reader, const char *text, size_t length,
                     enum toml_type *ret_type, struct toml_buffer *ret_value)
{
    char word[NUMBER_MAX], value[NUMBER_MAX];

    if (length == 0)
        return toml_fail(reader, "a value is missing");
    if (length < NUMBER_MAX) {
        memcpy(word, text, length);
        word[length] = '\0';
        *ret_type = TOML_BOOLEAN;
        if (!strcmp(word, "true") || !strcmp(word, "false") || read_date_or_time(word, ret_type))
            return toml_append(reader, ret_value, word, length);
        if (read_number(word, length, ret_type, value))
            return toml_append(reader, ret_value, value, strlen(value));
    }
    return toml_fail(reader,
                     "neither a number, nor a date, nor true or false, and not in quotes: %.*s",
                     (int)(length < 100 ? length : 100), text);
}
