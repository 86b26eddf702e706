/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed shared memory. The seals are what makes a peer's file safe to map. Without F_SEAL_SHRINK
 * its owner could cut it short, and every later access here would raise SIGBUS. */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fd.h"

static int make_file(const char *name, int *ret_fd)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int shm_create(const char *name, size_t size, int *ret_fd)
{
    _cleanup_fd_ int fd = -1;
    int rc = make_file(name, &fd);
    if (rc < 0)
        return rc;
    if (ftruncate(fd, (off_t)size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    *ret_fd = fd_steal(&fd);
    return 0;
}

int shm_create_read_only(const char *name, const void *data, size_t size, int *ret_fd)
{
    _cleanup_fd_ int fd = -1;
    int rc = make_file(name, &fd);
    if (rc < 0)
        return rc;
    rc = write_all(fd, data, size);
    if (rc == 0)
        rc = write_all(fd, "", 1);
    if (rc < 0)
        return rc;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    *ret_fd = fd_steal(&fd);
    return 0;
}

int shm_map(int fd, size_t size, void *fixed_address, unsigned flags, void **ret_address)
{
    int protection = flags & SHM_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
    int how = MAP_SHARED;
    if (fixed_address)
        how |= flags & SHM_REPLACE ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    void *address = mmap(fixed_address, size, protection, how, fd, 0);
    if (address == MAP_FAILED)
        return -errno;
    if (fixed_address && address != fixed_address) {
        munmap(address, size); /* a kernel before 4.17 takes MAP_FIXED_NOREPLACE as a hint */
        return -EEXIST;
    }
    *ret_address = address;
    return 0;
}

int shm_populate_mapping(void *address, size_t size)
{
    madvise(address, size, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    return madvise(address, size, MADV_POPULATE_WRITE) ? -errno : 0;
#else
    return -EINVAL;
#endif
}

/* A mapping may get huge pages, where fallocate() gets small ones. Before Linux 5.14 there is only
 * that. */
int shm_populate(int fd, size_t size)
{
    void *address;
    int rc = shm_map(fd, size, NULL, 0, &address);
    if (rc < 0)
        return rc;
    rc = shm_populate_mapping(address, size);
    shm_unmap(address, size);
    if (rc == -EINVAL)
        rc = fallocate(fd, 0, 0, (off_t)size) ? -errno : 0;
    return rc;
}

bool shm_is_populated(int fd, size_t size)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (uint64_t)status.st_blocks * 512 >= size;
}

void shm_unmap(void *address, size_t size)
{
    if (address)
        munmap(address, size);
}

int shm_check(int fd, size_t size)
{
    struct stat status;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        fstatfs(fd, &system) < 0 || system.f_type != TMPFS_MAGIC)
        return -EINVAL;
    if (!(seals & F_SEAL_SHRINK))
        return -EPERM;
    return (uint64_t)status.st_size >= size ? 0 : -EMSGSIZE;
}
