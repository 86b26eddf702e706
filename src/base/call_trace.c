/* SPDX-License-Identifier: Apache-2.0 */
#include "call_trace.h"

#include <stdio.h>
#include <unistd.h>

#include "clock.h"

#define RESULT_MAX 24

static int first_words(char *line, size_t size, const char *name, uint64_t began_ns)
{
    const uint64_t now = clock_ns();
    const uint64_t start = began_ns ? began_ns : now;

    return snprintf(line, size, "%d.%d %llu %llu %s(", (int)getpid(), (int)gettid(),
                    (unsigned long long)(start / NS_PER_US),
                    (unsigned long long)((now - start) / NS_PER_US), name);
}

bool call_trace_write(int fd, const char *name, uint64_t began_ns, int result, const char *format,
                      va_list arguments)
{
    char line[1024];
    const int end = (int)sizeof(line) - RESULT_MAX;
    int at = first_words(line, (size_t)end, name, began_ns);
    int more = vsnprintf(line + at, (size_t)(end - at), format, arguments);

    at = more < 0 || at + more >= end ? end - 1 : at + more;
    at += snprintf(line + at, RESULT_MAX, ") = %d\n", result);
    return write(fd, line, (size_t)at) == at;
}
