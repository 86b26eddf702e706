/* SPDX-License-Identifier: Apache-2.0 */
/* See swap_file.h. */
#include "swap_file.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "file_guard.h"
#include "hash.h"
#include "shm.h"

#define MAGIC 0x32706177536e7546u /* "FunSwap2" */
#define ENTRIES_MAX (1u << 17)

#define F2FS_MAGIC 0xf2f52010u
#define ZFS_MAGIC 0x2fc12fc1u

struct head {
    uint64_t magic, count, hash;
};

static bool is_local(uint64_t type)
{
    static const uint64_t local[] = {TMPFS_MAGIC,       EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                     BTRFS_SUPER_MAGIC, F2FS_MAGIC,       ZFS_MAGIC};

    for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
        if (type == local[i])
            return true;
    return false;
}

static bool is_in_memory(int fd)
{
    struct statfs system;

    return !fstatfs(fd, &system) && system.f_type == TMPFS_MAGIC;
}

int swap_file_check(int fd)
{
    struct stat status;
    struct statfs system;

    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || fstatfs(fd, &system) ||
        !is_local((uint64_t)system.f_type))
        return -EOPNOTSUPP;
    return 0;
}

static int pwrite_all(int fd, const void *data, size_t size, uint64_t offset)
{
    const char *next = data;

    while (size) {
        ssize_t written = pwrite(fd, next, size, (off_t)offset);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written <= 0)
            continue;
        next += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return 0;
}

static int read_at(int fd, void *data, size_t size, uint64_t offset)
{
    int error = offset > INT64_MAX - size ? -EBADMSG : pread_all(fd, data, size, (off_t)offset);

    return error == -ENODATA ? -EBADMSG : error;
}

uint64_t swap_file_hash(const uint64_t *hashes, uint64_t count)
{
    uint64_t hash = 0;

    for (uint64_t i = 0; i < count; i++)
        hash = hash * 0x9e3779b97f4a7c15u + hashes[i];
    return hash;
}

/* ---- writing ---- */

int swap_file_begin(int fd, unsigned entries, uint64_t contents, uint64_t *ret_offset)
{
    uint64_t size = sizeof(struct head) + entries * sizeof(struct swap_entry);
    uint64_t offset = swap_file_chunks(size) * SWAP_FILE_CHUNK;

    if (ftruncate(fd, 0) || ftruncate(fd, (off_t)(offset + contents)))
        return -errno;
    *ret_offset = offset;
    return 0;
}

/* A page for which the file system has no space would raise SIGBUS; here that is EFAULT. */
static int populate(void *pages, size_t size)
{
    int error = shm_populate_mapping(pages, size);

    if (error == -EFAULT)
        return -ENOSPC;
    return error == -EINVAL ? -EOPNOTSUPP : error;
}

static bool is_zero(const unsigned char *data, size_t size)
{
    return !data[0] && !memcmp(data, data + 1, size - 1);
}

/* write() would have the threads create the pages of a file in memory one after the other, under
 * its lock. Through a mapping they do it side by side. -EOPNOTSUPP where the kernel cannot do that.
 */
static int write_mapped(int fd, const void *data, size_t size, uint64_t offset)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

    if (pages == MAP_FAILED)
        return -EOPNOTSUPP;
    int error = file_guard_add((uintptr_t)pages, size);
    if (!error) {
        error = populate(pages, size);
        if (!error)
            memcpy(pages, data, size);
        if (file_guard_remove((uintptr_t)pages) && !error)
            error = -EIO;
    }
    munmap(pages, size);
    return error;
}

static int write_chunk(int fd, const void *data, size_t size, uint64_t offset)
{
    int error = is_in_memory(fd) ? write_mapped(fd, data, size, offset) : -EOPNOTSUPP;

    return error == -EOPNOTSUPP ? pwrite_all(fd, data, size, offset) : error;
}

int swap_file_write(int fd, uint64_t offset, const void *data, size_t size, uint64_t *ret_hash)
{
    *ret_hash = hash_bytes(data, size);
    return is_zero(data, size) ? 0 : write_chunk(fd, data, size, offset);
}

/* Chunks that are all zero are written as well, since there is no hole. */
int swap_file_rewrite(int fd, uint64_t offset, const void *data, size_t size, uint64_t *ret_hash)
{
    *ret_hash = hash_bytes(data, size);
    return write_chunk(fd, data, size, offset);
}

int swap_file_extend(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size) ? -errno : 0;
}

int swap_file_sync(int fd)
{
    return fdatasync(fd) ? -errno : 0;
}

int swap_file_complete(int fd, const struct swap_entry *entries, unsigned count)
{
    const size_t size = count * sizeof(*entries);
    const struct head head = {MAGIC, count, hash_bytes(entries, size)};
    int error = pwrite_all(fd, entries, size, sizeof(head));

    if (!error)
        error = pwrite_all(fd, &head, sizeof(head), 0);
    return error ? error : swap_file_sync(fd);
}

/* ---- reading ---- */

static int read_entries(int fd, const struct head *head, struct swap_entry *entries)
{
    const size_t size = head->count * sizeof(*entries);
    int error = read_at(fd, entries, size, sizeof(*head));

    return error || hash_bytes(entries, size) == head->hash ? error : -EBADMSG;
}

static int find_entry(const struct swap_entry *entries, uint64_t count, uint64_t address,
                      uint64_t size, struct swap_entry *ret_entry)
{
    for (uint64_t i = 0; i < count; i++) {
        if (entries[i].address != address || entries[i].size != size)
            continue;
        *ret_entry = entries[i];
        return 0;
    }
    return -ENOENT;
}

int swap_file_find(int fd, uint64_t address, uint64_t size, struct swap_entry *ret_entry)
{
    _cleanup_free_ struct swap_entry *entries = NULL;
    struct head head;
    int error = read_at(fd, &head, sizeof(head), 0);

    if (!error && (head.magic != MAGIC || head.count > ENTRIES_MAX))
        error = -EBADMSG;
    if (error)
        return error;
    entries = malloc((head.count + 1) * sizeof(*entries));
    error = entries ? read_entries(fd, &head, entries) : -ENOMEM;
    return error ? error : find_entry(entries, head.count, address, size, ret_entry);
}

int swap_file_read(int fd, uint64_t offset, void *data, size_t size, uint64_t *ret_hash)
{
    int error = read_at(fd, data, size, offset);

    if (!error)
        *ret_hash = hash_bytes(data, size);
    return error;
}
