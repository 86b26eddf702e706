/* SPDX-License-Identifier: Apache-2.0 */
/* See client_arguments.h. */
#include "client_arguments.h"

#include <string.h>

/* `size` is the alignment, too. */
static void append_bytes(struct client_arguments *arguments, const void *value, size_t size)
{
    size_t at = (arguments->size + size - 1) / size * size;

    if (at + size > CLIENT_ARGUMENTS_SIZE) {
        arguments->is_partial = true;
        return;
    }
    memcpy(arguments->bytes + at, value, size);
    arguments->size = at + size;
}

/* Integers of one or two bytes take four, with their value in the first: none stands beside another
 * of their kind. */
static void append_value(struct client_arguments *arguments, const char *form, va_list *values)
{
    uint64_t wide;
    unsigned narrow;
    float real;

    if (!strncmp(form, "%z", 2) || !strncmp(form, "%#ll", 4)) {
        wide = va_arg(*values, uint64_t);
        append_bytes(arguments, &wide, sizeof(wide));
    } else if (!strncmp(form, "%g", 2)) {
        real = (float)va_arg(*values, double);
        append_bytes(arguments, &real, sizeof(real));
    } else if (*form == '%') {
        narrow = va_arg(*values, unsigned);
        append_bytes(arguments, &narrow, sizeof(narrow));
    } else {
        arguments->is_partial = true;
    }
}

static void append_pointer(struct client_arguments *arguments, const char *name, void *value)
{
    if (!strncmp(name, "hStream=", strlen("hStream=")))
        arguments->stream = value;
    else if (!strncmp(name, "hEvent=", strlen("hEvent=")))
        arguments->event = value;
    else if (!strncmp(name, "f=", strlen("f=")))
        arguments->function = value;
    append_bytes(arguments, &value, sizeof(value));
}

void client_arguments_pack(struct client_arguments *arguments, const char *format, va_list given)
{
    va_list values;

    memset(arguments, 0, sizeof(*arguments));
    va_copy(values, given);
    for (const char *at = format, *form; at && (form = strchr(at, '=')); at = strchr(form, ' ')) {
        at += *at == ' ';
        form++;
        if (!strncmp(form, "%p", 2) || !strncmp(form, "%s", 2))
            append_pointer(arguments, at, va_arg(values, void *));
        else
            append_value(arguments, form, &values);
    }
    va_end(values);
}
