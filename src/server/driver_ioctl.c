/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces libc's ioctl(), so that the server learns which channel groups its driver creates
 * (channel_groups.h), and hears of faults sooner (error_states.h). The linker prefers symbols of
 * the program to libc's, as in lock_spin.c.
 */
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel_groups.h"
#include "error_states.h"

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...);

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;

    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (error_states_answer(request, argument))
        return 0;
    int result = (int)syscall(SYS_ioctl, fd, request, argument);
    if (result == 0)
        channel_groups_see(fd, request, argument);
    return result;
}
