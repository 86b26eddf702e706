/* SPDX-License-Identifier: Apache-2.0 */
/* See toml_string.h. */
#include "toml_string.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int toml_append(struct toml_reader *reader, struct toml_buffer *buffer, const char *text,
                size_t length)
{
    size_t capacity = (buffer->length + length) * 2 + 16;
    char *grown = buffer->text;

    if (buffer->length + length + 1 > buffer->capacity) {
        grown = realloc(buffer->text, capacity);
        if (!grown) {
            toml_fail(reader, "out of memory");
            return -ENOMEM;
        }
        buffer->text = grown;
        buffer->capacity = capacity;
    }
    if (length)
        memcpy(grown + buffer->length, text, length);
    buffer->length += length;
    grown[buffer->length] = '\0';
    return 0;
}

/* ---- characters ---- */

/* Bytes of the character that begins here, 0 where it is not UTF-8. */
static size_t utf8_length(const unsigned char *at, const unsigned char *end)
{
    size_t length = *at < 0x80 ? 1 : *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    uint32_t value = *at & (0xffu >> (length == 1 ? 0 : length + 1));
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if (*at >= 0xf8 || (*at >= 0x80 && *at < 0xc2) || (size_t)(end - at) < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3f);
    }
    return value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)
               ? 0
               : length;
}

static bool is_control(const char *at)
{
    unsigned char letter = (unsigned char)*at;

    if (letter == '\r')
        return at[1] != '\n';
    return (letter < ' ' && letter != '\t' && letter != '\n') || letter == 0x7f;
}

int toml_check_text(struct toml_reader *reader, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + size;

    for (reader->line = 1; at < end; reader->line += *at++ == '\n') {
        size_t length = utf8_length(at, end);

        if (length == 0)
            return toml_fail(reader, "a character is not UTF-8");
        if (is_control((const char *)at))
            return toml_fail(reader, "a control character");
        at += length - 1;
    }
    reader->line = 1;
    return 0;
}

static size_t encode_utf8(uint32_t value, char text[4])
{
    size_t length = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length - 1; i > 0; i--, value >>= 6)
        text[i] = (char)(0x80 | (value & 0x3f));
    text[0] = (char)(first[length] | value);
    return length;
}

/* ---- escapes ---- */

static int read_code_point(struct toml_reader *reader, int digits, struct toml_buffer *buffer)
{
    uint32_t value = 0;
    char text[4];

    for (int i = 0; i < digits; i++, reader->at++) {
        unsigned char letter = (unsigned char)*reader->at;

        if (!isxdigit(letter))
            return toml_fail(reader, "an escape of %d hexadecimal digits has fewer", digits);
        value = value << 4 | (uint32_t)(isdigit(letter) ? letter - '0' : (letter | 32) - 'a' + 10);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return toml_fail(reader, "an escape is no character of Unicode");
    return toml_append(reader, buffer, text, encode_utf8(value, text));
}

static int read_escape(struct toml_reader *reader, struct toml_buffer *buffer)
{
    static const char letters[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    char letter = reader->at[1];
    const char *known = letter ? strchr(letters, letter) : NULL;

    reader->at += 2;
    if (letter == 'u' || letter == 'U')
        return read_code_point(reader, letter == 'u' ? 4 : 8, buffer);
    if (!known) {
        reader->at -= 2;
        return toml_fail(reader, "an escape in a string is not known: \\%c", letter ? letter : ' ');
    }
    return toml_append(reader, buffer, values + (known - letters), 1);
}

/* A backslash at the end of a line: all blanks up to the next character are left out. */
static bool skip_line_end(struct toml_reader *reader)
{
    const char *at = reader->at + 1;

    at += strspn(at, " \t");
    if (*at != '\n' && !(*at == '\r' && at[1] == '\n'))
        return false;
    for (; *at && strchr(" \t\r\n", *at); at++)
        reader->line += *at == '\n';
    reader->at = at;
    return true;
}

/* ---- strings ---- */

static int read_one_line(struct toml_reader *reader, char quote, struct toml_buffer *buffer)
{
    int error = toml_append(reader, buffer, "", 0);

    reader->at++;
    while (!error && *reader->at != quote) {
        if (reader->at == reader->end || *reader->at == '\n' || *reader->at == '\r')
            return toml_fail(reader, "a string has no end");
        if (quote == '"' && *reader->at == '\\')
            error = read_escape(reader, buffer);
        else
            error = toml_append(reader, buffer, reader->at++, 1);
    }
    reader->at += !error;
    return error;
}

static bool ends_here(const char *at, char quote)
{
    return at[0] == quote && at[1] == quote && at[2] == quote;
}

static int read_character(struct toml_reader *reader, char quote, struct toml_buffer *buffer)
{
    if (quote == '"' && *reader->at == '\\')
        return skip_line_end(reader) ? 0 : read_escape(reader, buffer);
    reader->line += *reader->at == '\n';
    return toml_append(reader, buffer, reader->at++, 1);
}

/* Up to two quotes may stand before the three that end it. */
static int read_several_lines(struct toml_reader *reader, char quote, struct toml_buffer *buffer)
{
    int error = toml_append(reader, buffer, "", 0);

    reader->at += 3;
    if (*reader->at == '\r')
        reader->at++;
    if (*reader->at == '\n') {
        reader->at++;
        reader->line++;
    }
    while (!error && !ends_here(reader->at, quote)) {
        if (reader->at == reader->end)
            return toml_fail(reader, "a string of several lines has no end");
        error = read_character(reader, quote, buffer);
    }
    for (int i = 0; !error && i < 2 && reader->at[3] == quote; i++)
        error = toml_append(reader, buffer, reader->at++, 1);
    reader->at += error ? 0 : 3;
    return error;
}

int toml_read_string(struct toml_reader *reader, bool is_key, struct toml_buffer *ret_buffer)
{
    char quote = *reader->at;

    return !is_key && ends_here(reader->at, quote) ? read_several_lines(reader, quote, ret_buffer)
                                                   : read_one_line(reader, quote, ret_buffer);
}
