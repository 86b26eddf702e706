/* SPDX-License-Identifier: Apache-2.0 */
/* The owner can truncate such a file, because it has no seals: see file_guard.h. */
#include "host_file.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file_guard.h"
#include "log.h"

int host_file_check(int fd, uint64_t offset, uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat status;
    struct statfs system;
    uint64_t end;

    if (offset % page || __builtin_add_overflow(offset, size, &end) || end > INT64_MAX)
        return -EINVAL;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || fstatfs(fd, &system) < 0 ||
        system.f_type != TMPFS_MAGIC)
        return -EOPNOTSUPP;
    return end <= ((uint64_t)status.st_size + page - 1) / page * page ? 0 : -EMSGSIZE;
}

int host_file_map(int fd, uint64_t offset, uint64_t size, uint64_t address)
{
    void *place = (void *)(uintptr_t)address;
    int r = file_guard_add(address, size);

    if (r < 0)
        return r;
    if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) ==
        place)
        return 0;
    r = -errno;
    file_guard_remove(address);
    return r;
}

void host_file_unmapped(uint64_t address)
{
    if (file_guard_remove(address))
        log_line("A file was cut short while a client had it registered with the device, which "
                 "has seen other memory since");
}
