/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and traces go to the server and to files, and to the program's own terminal only where
 * FUNNEL_VERBOSE asks for it. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call_trace.h"
#include "client.h"
#include "client_entry.h"
#include "client_log.h"
#include "client_profile.h"
#include "clock.h"
#include "fd.h"
#include "first_times.h"
#include "log.h"
#include "switch.h"
#include "user_log.h"
#include "wire_calls.h"

#define MESSAGE_MAX 1024
#define NOTE_MAX 512

bool client_tracing;

static int log_fd = -1, trace_fd = -1;
static char user_log[PATH_MAX]; /* where there is no FUNNEL_LOG; "" = nowhere */
static bool is_verbose;         /* on standard error, too */

void client_log_open(void)
{
    if (log_fd < 0 && (log_fd = fd_open_log("FUNNEL_LOG")) >= 0)
        log_open(log_fd, "Client");
    if (log_fd < 0 && user_log_path(user_log, sizeof(user_log)))
        *user_log = '\0';
    is_verbose = switch_is_on("FUNNEL_VERBOSE");
    if (trace_fd < 0)
        trace_fd = fd_open_log("FUNNEL_TRACE");
    client_log_follow_profile();
}

void client_log_follow_profile(void)
{
    client_tracing = trace_fd >= 0 || client_profile_is_on();
}

static void write_message(int error, const char *text)
{
    int saved_errno = errno;

    if (log_fd >= 0)
        log_with(LOG_EVENT(getpid(), error), "%s", text);
    else if (*user_log)
        user_log_line(user_log, error, text);
    if (is_verbose)
        dprintf(STDERR_FILENO, "funnel: %s\n", text);
    errno = saved_errno;
}

void client_log_to_file(int error, const char *format, ...)
{
    char text[MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    write_message(error, text);
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
    write_message(0, text);
    if (length < 0 || !client || client_error() != CUDA_SUCCESS)
        return;
    in.text_size = length < NOTE_MAX ? (uint32_t)length : NOTE_MAX;
    channel_lock(&client->channel);
    wire_fnNote(&client->channel, &in);
    channel_unlock(&client->channel);
}

void client_unsupported(const char *name)
{
    static struct first_times noted = FIRST_TIMES_INIT;

    if (first_time(&noted, name, 0))
        client_log("%s is not supported", name);
}

uint64_t client_call_began(const char *name, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    client_profile_enter(name, format, arguments);
    va_end(arguments);
    return clock_ns();
}

void client_trace(const char *name, uint64_t began_ns, CUresult result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    client_profile_leave(name, began_ns, result, format, arguments);
    if (trace_fd >= 0 &&
        !call_trace_write(trace_fd, name, began_ns, (int)result, format, arguments)) {
        trace_fd = -1;
        client_log_follow_profile();
    }
    va_end(arguments);
}
