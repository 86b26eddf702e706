/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message is "FILE:LINE: FUNCTION: block: [X,Y,Z], thread: [X,Y,Z] Assertion `...` failed.",
 * with FUNCTION as C++ writes it: "void pick<int>(int *)". The bare name in it is part of the
 * kernel's name in the module, mangled or not.
 */
#include "assert_message.h"

#include <string.h>

#define BEHIND_FUNCTION ": block: ["
#define NAME_MAX_SIZE 128u

static bool is_of_a_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Where FUNCTION begins. */
static const char *function_before(const char *text, const char *end)
{
    const char *begin = end;

    while (begin > text && !(begin[-1] == ' ' && begin - 1 > text && begin[-2] == ':'))
        begin--;
    return begin;
}

/* The name before arguments and template arguments. */
static size_t bare_name(const char *function, const char *end, const char **ret_name)
{
    const char *stop = function + 1;

    while (stop < end && !((*stop == '(' || *stop == '<') && is_of_a_name(stop[-1])))
        stop++;
    const char *begin = stop;
    while (begin > function && is_of_a_name(begin[-1]))
        begin--;
    *ret_name = begin;
    return (size_t)(stop - begin);
}

static bool names_kernel(const char *function, const char *end, const char *kernel)
{
    const char *begin;
    char name[NAME_MAX_SIZE];
    size_t size = function < end ? bare_name(function, end, &begin) : 0;

    if (!size || size >= sizeof(name))
        return false;
    memcpy(name, begin, size);
    name[size] = '\0';
    return strstr(kernel, name);
}

bool assert_message_names(const char *text, const char *kernel)
{
    const char *end;

    for (; (end = strstr(text, BEHIND_FUNCTION)); text = end + 1) {
        if (names_kernel(function_before(text, end), end, kernel))
            return true;
    }
    return false;
}
