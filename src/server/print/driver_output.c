/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory files take the place of standard output and standard error: a writer never waits, whatever
 * the amount, and what has been read is given back to the system.
 *
 * Of standard error only the C library's stream is redirected. Drivers report failed assertions
 * through it; what writes to the descriptor is a runtime library with its exit message, which
 * belongs in the log.
 */
#include "driver_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"

static struct capture {
    FILE *file;
    int fd;
    off_t start; /* what lies before it has been read */
} captures[OUTPUT_KINDS];

static int capture_descriptor(struct capture *capture, FILE *file)
{
    int fd = memfd_create("funnel-output", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    fflush(file);
    if (dup2(fd, fileno(file)) < 0) {
        int error = -errno;
        fd_close(&fd);
        return error;
    }
    *capture = (struct capture){.file = file, .fd = fd};
    return 0;
}

/* Only the GNU library lets a program put another stream in the place of stderr. */
static int capture_error_stream(struct capture *capture)
{
#ifdef __GLIBC__
    int fd = memfd_create("funnel-errors", MFD_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (!file) {
        int error = -errno;
        fd_close(&fd);
        return error;
    }
    stderr = file;
    *capture = (struct capture){.file = file, .fd = fd};
#endif
    return 0;
}

int driver_output_capture(void)
{
    int error = capture_descriptor(&captures[OUTPUT_STDOUT], stdout);

    return error ? error : capture_error_stream(&captures[OUTPUT_STDERR]);
}

size_t driver_output_read(enum region_output kind, char *ret_text, size_t size)
{
    struct capture *capture = &captures[kind];

    if (!capture->file)
        return 0;
    fflush(capture->file);
    ssize_t count = pread(capture->fd, ret_text, size, capture->start);
    if (count <= 0)
        return 0;
    fallocate(capture->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, capture->start, count);
    capture->start += count;
    return (size_t)count;
}
