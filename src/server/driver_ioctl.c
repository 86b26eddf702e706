/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the place of libc's ioctl(), so that the server learns which channel groups its driver
 * makes (channel_groups.h). What a program defines itself comes before libc, as with lock_spin.c.
 */
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel_groups.h"

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...);

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;

    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    int result = (int)syscall(SYS_ioctl, fd, request, argument);
    if (result == 0)
        channel_groups_see(fd, request, argument);
    return result;
}
