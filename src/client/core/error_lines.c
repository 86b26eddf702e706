/* SPDX-License-Identifier: Apache-2.0 */
/* See error_lines.h. The lines have the form of NVIDIA's driver: time, thread, source, level. */
#include "error_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "cuda_error.h"
#include "list.h"

struct listener {
    struct list link;
    CUlogsCallback callback;
    void *user;
};

struct line_ring error_lines = LINE_RING_INIT;

static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list listeners = {&listeners, &listeners};

/* A callback may not call the driver, as CUDA says. */
static void tell_listeners(char *text)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);

    list_for_each (struct listener, listener, &listeners, link)
        listener->callback(listener->user, CU_LOG_LEVEL_ERROR, text, strlen(text));
}

static void format_line(const char *text, char line[LINE_RING_LENGTH])
{
    struct timespec now;
    struct tm parts;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    snprintf(line, LINE_RING_LENGTH, "[%02d:%02d:%02d.%03ld][%lu][CUDA][E] %s", parts.tm_hour,
             parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000, (unsigned long)pthread_self(),
             text);
}

void error_lines_add(const char *call, CUresult result)
{
    const char *name = cuda_error_name(result);
    char text[160], line[LINE_RING_LENGTH];

    if (result == CUDA_ERROR_NOT_READY)
        return;
    snprintf(text, sizeof(text), "Returning %d (%s) from %s", (int)result,
             name ? name : "an unknown error", call);
    format_line(text, line);
    line_ring_add(&error_lines, line);
    tell_listeners(text);
}

CUlogsCallbackHandle error_lines_listen(CUlogsCallback callback, void *user)
{
    struct listener *listener = malloc(sizeof(*listener));

    if (!listener)
        return NULL;
    *listener = (struct listener){.callback = callback, .user = user};
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);
    list_append(&listeners, &listener->link);
    return (CUlogsCallbackHandle)listener;
}

bool error_lines_leave(CUlogsCallbackHandle handle)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);

    list_for_each_safe (struct listener, listener, &listeners, link) {
        if ((CUlogsCallbackHandle)listener != handle)
            continue;
        list_remove(&listener->link);
        free(listener);
        return true;
    }
    return false;
}
