/* SPDX-License-Identifier: Apache-2.0 */
/* The log. A line is put together on the stack and written by one write(2). There is no other
 * locking, between threads or between processes that append to the same file. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "switch.h"
#include "text.h"

#define LOG_LINE_MAX 4096

static _Atomic int log_fd = -1;
static const char *_Atomic log_role = "";
static _Atomic uint64_t log_lost;
static _Atomic uint64_t log_gap; /* of them, those of which no line tells yet */
static _Atomic bool log_is_cut;  /* the last line that was written has no end */

void log_open(int fd, const char *role)
{
    atomic_store_explicit(&log_role, role, memory_order_relaxed);
    atomic_store_explicit(&log_fd, fd, memory_order_release);
}

uint64_t log_dropped(void)
{
    return atomic_load_explicit(&log_lost, memory_order_relaxed);
}

/* "[2025-01-31 12:00:00.000 Server   417] ": returns its length. */
static size_t put_stamp(char *line, size_t capacity)
{
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    size_t length = strftime(line, capacity, "[%Y-%m-%d %H:%M:%S", &local);
    const char *role = atomic_load_explicit(&log_role, memory_order_relaxed);
    length += (size_t)snprintf(line + length, capacity - length, ".%03ld %.32s %5ld] ",
                               now.tv_nsec / 1000000, role, (long)getpid());
    return length;
}

/* Text may come from a client: it must not be able to forge a line of its own. */
static void flatten(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = ' ';
    text_make_printable(text);
}

/* The length of the text, which leaves capacity for the record and the newline. */
static size_t put_text(char *text, size_t capacity, const char *format, va_list arguments)
{
    int wanted = vsnprintf(text, capacity, format, arguments);
    size_t length = wanted < 0 ? 0 : (size_t)wanted < capacity ? (size_t)wanted : capacity - 1;

    flatten(text, length);
    return length;
}

/* `record` may be NULL. */
static bool write_line(int fd, const struct log_record *record, const char *format,
                       va_list arguments)
{
    char line[LOG_LINE_MAX], tail[LOG_RECORD_MAX] = "";
    size_t length = put_stamp(line, sizeof(line));
    size_t tail_length = record ? log_record_put(record, tail) : 0;

    length += put_text(line + length, sizeof(line) - length - tail_length - 1, format, arguments);
    memcpy(line + length, tail, tail_length);
    length += tail_length;
    line[length++] = '\n';

    ssize_t written = write(fd, line, length);
    if (written > 0 && line[written - 1] != '\n')
        atomic_store_explicit(&log_is_cut, true, memory_order_relaxed);
    return written == (ssize_t)length;
}

bool log_line_to(int fd, const char *format, ...)
{
    int saved_errno = errno;
    va_list arguments;
    va_start(arguments, format);
    bool written = write_line(fd, NULL, format, arguments);
    va_end(arguments);
    errno = saved_errno;
    return written;
}

/* Of several threads one tells, of the lines that were lost until then. */
static void tell_of_gap(int fd)
{
    uint64_t gap = atomic_exchange_explicit(&log_gap, 0, memory_order_relaxed);
    if (atomic_load_explicit(&log_is_cut, memory_order_relaxed) && write(fd, "\n", 1) == 1)
        atomic_store_explicit(&log_is_cut, false, memory_order_relaxed);
    if (gap && !log_line_to(fd, "%llu lines are missing here: they could not be written",
                            (unsigned long long)gap))
        atomic_fetch_add_explicit(&log_gap, gap, memory_order_relaxed);
}

static void log_arguments(const struct log_record *record, const char *format, va_list arguments)
{
    int fd = atomic_load_explicit(&log_fd, memory_order_acquire);
    if (fd < 0)
        return;
    int saved_errno = errno;
    if (atomic_load_explicit(&log_gap, memory_order_relaxed))
        tell_of_gap(fd);
    if (!write_line(fd, record, format, arguments)) {
        atomic_fetch_add_explicit(&log_lost, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&log_gap, 1, memory_order_relaxed);
    }
    errno = saved_errno;
}

void log_line(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_arguments(NULL, format, arguments);
    va_end(arguments);
}

void log_with(const struct log_record *record, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    log_arguments(record, format, arguments);
    va_end(arguments);
}

void log_debug(const char *format, ...)
{
    static _Atomic int known;

    if (!switch_is_on_once(&known, "FUNNEL_DEBUG"))
        return;
    va_list arguments;
    va_start(arguments, format);
    log_arguments(NULL, format, arguments);
    va_end(arguments);
}
