/* SPDX-License-Identifier: Apache-2.0 */
/* A process that may open the device gets the same descriptor as root. */
#include "userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"

/* Constants that some kernel headers do not have yet. */
#define THREADS_ONLY 1
#define NEW_DESCRIPTOR _IO(UFFDIO, 0x00)

static int open_by_device(void)
{
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), fd;

    if (device < 0)
        return -1;
    fd = ioctl(device, NEW_DESCRIPTOR, O_CLOEXEC);
    fd_close(&device);
    return fd;
}

int userfault_open(bool threads_only, bool *ret_threads_only)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), error = errno;

    *ret_threads_only = false;
    if (fd < 0)
        fd = open_by_device();
    if (fd < 0 && threads_only) {
        fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | THREADS_ONLY);
        *ret_threads_only = true;
    }
    return fd < 0 ? -error : fd;
}
