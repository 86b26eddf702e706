/* SPDX-License-Identifier: Apache-2.0 */
/* The same escapes serve Prometheus: its labels know \\ and \" as well, and nothing else is used.
 */
#include "json_text.h"

#include <stdbool.h>
#include <string.h>

/* How many bytes the UTF-8 sequence at `text` has; 0 when it is none. Surrogates and overlong forms
 * are none. */
static size_t sequence_length(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char mask, lead;
        unsigned least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t length = 1; length <= 4 && length <= left; length++) {
        if ((text[0] & forms[length - 1].mask) != forms[length - 1].lead)
            continue;
        unsigned code = text[0] & (unsigned char)~forms[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((text[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (text[i] & 0x3fu);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return code < forms[length - 1].least || surrogate || code > 0x10ffff ? 0 : length;
    }
    return 0;
}

void json_text_add(struct evbuffer *out, const char *text, size_t capacity)
{
    size_t size = strnlen(text, capacity), length;

    evbuffer_add(out, "\"", 1);
    for (size_t i = 0; i < size; i += length ? length : 1) {
        length = sequence_length((const unsigned char *)text + i, size - i);
        if (!length || (unsigned char)text[i] < ' ' || text[i] == 127)
            evbuffer_add(out, "?", 1);
        else if (text[i] == '"' || text[i] == '\\')
            evbuffer_add_printf(out, "\\%c", text[i]);
        else
            evbuffer_add(out, text + i, length);
    }
    evbuffer_add(out, "\"", 1);
}
