/* SPDX-License-Identifier: Apache-2.0 */
/* cuLogs*(): the errors that calls of this program have returned. Flags are not looked at, as
 * NVIDIA's driver does. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "client_prototypes.h"
#include "error_lines.h"
#include "fd.h"

CUresult client_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                       CUlogsCallbackHandle *callback_out)
{
    CUlogsCallbackHandle handle;

    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    handle = error_lines_listen(callbackFunc, userData);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (callback_out)
        *callback_out = handle;
    return CUDA_SUCCESS;
}

CUresult client_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    return error_lines_leave(callback) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult client_cuLogsCurrent(CUlogIterator *iterator_out, unsigned flags)
{
    *iterator_out = line_ring_next(&error_lines);
    return CUDA_SUCCESS;
}

/* A buffer that takes no line is an error, if there are lines. */
CUresult client_cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size,
                                   unsigned flags)
{
    uint32_t from = iterator ? *iterator : 0, next;

    if (!buffer)
        return CUDA_ERROR_INVALID_VALUE;
    *size = line_ring_copy(&error_lines, from, buffer, *size, &next);
    if (*size == 0 && next > from)
        return CUDA_ERROR_INVALID_VALUE;
    if (iterator)
        *iterator = next;
    return CUDA_SUCCESS;
}

CUresult client_cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned flags)
{
    char lines[LINE_RING_LINES * LINE_RING_LENGTH];
    uint32_t next;

    size_t size =
        line_ring_copy(&error_lines, iterator ? *iterator : 0, lines, sizeof(lines), &next);
    _cleanup_fd_ int fd = open(pathToFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write_all(fd, lines, size) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (iterator)
        *iterator = next;
    return CUDA_SUCCESS;
}
