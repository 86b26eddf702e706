/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the C library's stdout and stderr by streams of our own. They have no buffer, so each
 * write of a driver arrives separately. Writes to the descriptors themselves, such as exit messages
 * of a runtime library, go to the log.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "driver_output.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"
#include "session.h"

/* Several times a context's printf buffer. */
#define WRITES_MAX ((size_t)64 << 20)

#define LOGGED_LINE 128 /* bytes, about, of a line in the log */

static struct {
    pthread_mutex_t lock; /* taken inside calls of a driver, so its holder makes no such call */
    struct driver_writes out[ATTACH_DEVICES_MAX + 1], errors;
    struct error_budget lost; /* of log lines about lost output */
} captured = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned source = DRIVER_OUTPUT_UNKNOWN;

static bool reserve_bytes(struct driver_writes *writes, size_t size)
{
    size_t capacity = writes->capacity ? writes->capacity : 4096;

    while (capacity < size)
        capacity *= 2;
    if (capacity == writes->capacity)
        return true;
    char *bytes = capacity <= WRITES_MAX ? realloc(writes->bytes, capacity) : NULL;
    if (!bytes)
        return false;
    writes->bytes = bytes;
    writes->capacity = capacity;
    return true;
}

bool driver_writes_add(struct driver_writes *writes, const char *text, size_t size)
{
    uint32_t length = (uint32_t)size;

    if (size > WRITES_MAX || !reserve_bytes(writes, writes->size + sizeof(length) + size))
        return false;
    memcpy(writes->bytes + writes->size, &length, sizeof(length));
    memcpy(writes->bytes + writes->size + sizeof(length), text, size);
    writes->size += sizeof(length) + size;
    return true;
}

size_t driver_writes_next(const struct driver_writes *writes, size_t at, const char **ret_text,
                          size_t *ret_size)
{
    uint32_t length;

    memcpy(&length, writes->bytes + at, sizeof(length));
    *ret_text = writes->bytes + at + sizeof(length);
    *ret_size = length;
    return at + sizeof(length) + length;
}

void driver_writes_fini(struct driver_writes *writes)
{
    free(writes->bytes);
    *writes = (struct driver_writes){0};
}

static void keep_write(struct driver_writes *writes, const char *text, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&captured.lock);
    bool last;

    if (size && !driver_writes_add(writes, text, size) &&
        error_budget_take(&captured.lost, LOGGED_LINE, &last))
        log_line("No client reads its device printf output: %zu bytes are lost", size);
}

static ssize_t keep_output(void *unused, const char *text, size_t size)
{
    (void)unused;
    keep_write(&captured.out[source], text, size);
    return (ssize_t)size;
}

static ssize_t keep_error(void *unused, const char *text, size_t size)
{
    (void)unused;
    keep_write(&captured.errors, text, size);
    return (ssize_t)size;
}

static FILE *open_stream(cookie_write_function_t *write)
{
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write});

    if (file)
        setvbuf(file, NULL, _IONBF, 0);
    return file;
}

int driver_output_capture(void)
{
    FILE *output = open_stream(keep_output), *errors = open_stream(keep_error);

    if (!output || !errors)
        return -ENOMEM;
    fflush(stdout);
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -errno;
    stdout = output;
    stderr = errors;
    return 0;
}

void driver_output_is_of(unsigned context)
{
    source = context;
}

void driver_output_take(unsigned context, struct driver_writes *ret_writes)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&captured.lock);

    *ret_writes = captured.out[context];
    captured.out[context] = (struct driver_writes){0};
}

size_t driver_output_take_errors(char *ret_text, size_t size)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&captured.lock);
    size_t taken = 0, length;
    const char *text;

    for (size_t at = 0; at < captured.errors.size;) {
        at = driver_writes_next(&captured.errors, at, &text, &length);
        length = length < size - taken ? length : size - taken;
        memcpy(ret_text + taken, text, length);
        taken += length;
    }
    driver_writes_fini(&captured.errors);
    return taken;
}
