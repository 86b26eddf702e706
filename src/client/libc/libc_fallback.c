/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the C library has only got since glibc 2.17. They are for the client library
 * alone. Programs of older systems load it, so it must not name them as symbols of the C library.
 * They hide the library's own within it. The kernel's structures are those of glibc on 64-bit
 * machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    return syscall(SYS_getrandom, buffer, size, flags);
}

int fstat(int fd, struct stat *status)
{
    return (int)syscall(SYS_fstat, fd, status);
}

int stat(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int lstat(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

/* Every argument of fcntl is a number or a pointer, which pass through one register alike. */
int fcntl(int fd, int command, ...)
{
    va_list arguments;
    long argument;

    va_start(arguments, command);
    argument = va_arg(arguments, long);
    va_end(arguments);
    return (int)syscall(SYS_fcntl, fd, command, argument);
}
