/* SPDX-License-Identifier: Apache-2.0 */
/* Where the library says something: never on the program's own terminal. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "client.h"
#include "client_entry.h"
#include "client_note.h"
#include "log.h"
#include "wire_calls.h"

#define NOTE_MAX 512
#define UNSUPPORTED_MAX 256

bool client_tracing;

static int log_fd = -1, trace_fd = -1;

static int open_named(const char *variable)
{
    const char *path = getenv(variable);

    if (!path || !*path)
        return -1;
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
}

void note_open(void)
{
    if (log_fd < 0 && (log_fd = open_named("FUNNEL_LOG")) >= 0)
        log_open(log_fd, "Client");
    if (trace_fd < 0)
        trace_fd = open_named("FUNNEL_TRACE");
    client_tracing = trace_fd >= 0;
}

void note_to_file(const char *format, ...)
{
    char text[NOTE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_line("%s", text);
}

void client_note(const char *format, ...)
{
    char text[NOTE_MAX];
    struct wire_fnNote in = {.text = text};
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length < 0 || !client || client_error() != CUDA_SUCCESS) {
        log_line("%s", text);
        return;
    }
    in.text_size = length < NOTE_MAX ? (uint32_t)length : NOTE_MAX - 1;
    channel_lock(&client->channel);
    wire_fnNote(&client->channel, &in);
    channel_unlock(&client->channel);
}

/* Names are literals of the generated code, so their addresses tell them apart. */
static bool first_time(const char *name)
{
    static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *noted[UNSUPPORTED_MAX];
    static unsigned count;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&noted_lock);

    for (unsigned i = 0; i < count; i++)
        if (noted[i] == name)
            return false;
    if (count < UNSUPPORTED_MAX)
        noted[count++] = name;
    return true;
}

void client_unsupported(const char *name)
{
    if (first_time(name))
        client_note("%s is not supported", name);
}

/* One write for each line, so that threads and processes do not mix. */
void client_trace(const char *name, CUresult result, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    int at = snprintf(line, sizeof(line), "%d %s(", (int)getpid(), name);
    int more;

    va_start(arguments, format);
    more = vsnprintf(line + at, sizeof(line) - (size_t)at, format, arguments);
    va_end(arguments);
    at = more < 0 || at + more > (int)sizeof(line) - 16 ? (int)sizeof(line) - 16 : at + more;
    at += snprintf(line + at, 16, ") = %d\n", (int)result);
    if (write(trace_fd, line, (size_t)at) < 0)
        client_tracing = false;
}
