/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and traces go to the server and to files, never to the program's own terminal. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call_trace.h"
#include "cleanup.h"
#include "client.h"
#include "client_entry.h"
#include "client_log.h"
#include "fd.h"
#include "log.h"
#include "wire_calls.h"

#define MESSAGE_MAX 512
#define UNSUPPORTED_MAX 256

bool client_tracing;

static int log_fd = -1, trace_fd = -1;

void client_log_open(void)
{
    if (log_fd < 0 && (log_fd = fd_open_log("FUNNEL_LOG")) >= 0)
        log_open(log_fd, "Client");
    if (trace_fd < 0)
        trace_fd = fd_open_log("FUNNEL_TRACE");
    client_tracing = trace_fd >= 0;
}

void client_log_to_file(const char *format, ...)
{
    char text[MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_line("%s", text);
}

void client_log(const char *format, ...)
{
    char text[MESSAGE_MAX];
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
    in.text_size = length < MESSAGE_MAX ? (uint32_t)length : MESSAGE_MAX - 1;
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
        client_log("%s is not supported", name);
}

void client_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!call_trace_write(trace_fd, name, began_ns, (int)result, format, arguments))
        client_tracing = false;
    va_end(arguments);
}
