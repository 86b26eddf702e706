/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the device's error messages to the file named by FUNNEL_SOFT_LOG, and
 * to the callbacks of cuLogsRegisterCallback. A callback must not call the driver back,
 * as CUDA says, for it is called from wherever something went wrong.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fd.h"
#include "soft.h"

#define LINE_SIZE 1024

struct listener {
    CUlogsCallback function;
    void *user;
    struct list in_all;
};

static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list listeners = {&listeners, &listeners};
static int log_fd = -1;

__attribute__((constructor)) static void open_log(void)
{
    const char *path = getenv("FUNNEL_SOFT_LOG");

    if (path && *path)
        log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

static void tell_listeners(char *line, size_t length)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);

    list_for_each (struct listener, listener, &listeners, in_all)
        listener->function(listener->user, CU_LOG_LEVEL_ERROR, line, length);
}

void soft_log(const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if (length > LINE_SIZE - 2)
        length = LINE_SIZE - 2;
    tell_listeners(line, length);
    line[length] = '\n';
    if (log_fd >= 0)
        write_all(log_fd, line, length + 1);
}

CUresult soft_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                     CUlogsCallbackHandle *callback_out)
{
    struct listener *listener;

    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    listener = malloc(sizeof(*listener));
    if (!listener)
        return CUDA_ERROR_OUT_OF_MEMORY;
    listener->function = callbackFunc;
    listener->user = userData;
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);

    list_append(&listeners, &listener->in_all);
    if (callback_out)
        *callback_out = (CUlogsCallbackHandle)listener;
    return CUDA_SUCCESS;
}

CUresult soft_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    _cleanup_mutex_ pthread_mutex_t *held = mutex_hold(&listeners_lock);

    list_for_each_safe (struct listener, listener, &listeners, in_all) {
        if ((CUlogsCallbackHandle)listener == callback) {
            list_remove(&listener->in_all);
            free(listener);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
