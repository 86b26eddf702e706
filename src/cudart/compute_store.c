/* SPDX-License-Identifier: Apache-2.0 */
/* A file is a header, the key and the data. */
#include "compute_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "compute_folder.h"
#include "fd.h"
#include "hash.h"
#include "switch.h"

#define MAGIC UINT64_C(0x32706d6f636c6e66) /* "fnlcomp2" */
#define NAME_SIZE 40u

struct header {
    uint64_t magic;
    uint64_t key_size;
    uint64_t data_size;
    uint64_t data_hash;
};

bool compute_store_is_off(void)
{
    return switch_is_on("CUDA_CACHE_DISABLE") || getauxval(AT_SECURE);
}

static void name_of(const struct compute_key *key, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%016llx", (unsigned long long)hash_bytes(key->bytes, key->size));
}

/* ---- reading ---- */

static bool is_own_file(int fd, const struct header *header)
{
    struct stat status;

    return !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & 077) &&
           (uint64_t)status.st_size == sizeof(*header) + header->key_size + header->data_size;
}

/* Another key may have the same name. */
static int check_key(int fd, const struct compute_key *key)
{
    _cleanup_free_ char *bytes = malloc(key->size);

    if (!bytes)
        return -ENOMEM;
    int error = read_all(fd, bytes, key->size);
    return error ? error : memcmp(bytes, key->bytes, key->size) ? -ENOENT : 0;
}

static int read_data(int fd, const struct header *header, void **ret_data)
{
    _cleanup_free_ char *data = malloc(header->data_size + 1);

    if (!data)
        return -ENOMEM;
    int error = read_all(fd, data, header->data_size);
    if (!error && hash_bytes(data, header->data_size) != header->data_hash)
        error = -EBADMSG;
    if (!error)
        *ret_data = steal_pointer(data);
    return error;
}

static int read_file(int fd, const struct compute_key *key, void **ret_data, uint32_t *ret_size)
{
    struct header header;
    int error = read_all(fd, &header, sizeof(header));

    if (error || header.magic != MAGIC || header.data_size > UINT32_MAX ||
        !is_own_file(fd, &header))
        return -EBADMSG;
    error = header.key_size == key->size ? check_key(fd, key) : -ENOENT;
    if (!error)
        error = read_data(fd, &header, ret_data);
    if (!error)
        *ret_size = (uint32_t)header.data_size;
    return error;
}

int compute_store_find(const struct compute_key *key, void **ret_data, uint32_t *ret_size)
{
    _cleanup_fd_ int folder = compute_folder_open(false);
    char name[NAME_SIZE];

    if (folder < 0)
        return folder;
    name_of(key, name);
    _cleanup_fd_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int error = read_file(fd, key, ret_data, ret_size);
    if (!error)
        futimens(fd, NULL); /* used now */
    else if (error == -EBADMSG)
        unlinkat(folder, name, 0);
    return error;
}

/* ---- writing ---- */

static int write_file(int fd, const struct compute_key *key, const void *data, uint32_t size)
{
    const struct header header = {MAGIC, key->size, size, hash_bytes(data, size)};
    int error = write_all(fd, &header, sizeof(header));

    if (!error)
        error = write_all(fd, key->bytes, key->size);
    return error ? error : write_all(fd, data, size);
}

/* The temporary file of a process that was killed counts as a file, and is evicted like one. */
static void name_new_file(char name[NAME_SIZE])
{
    static atomic_uint count;

    snprintf(name, NAME_SIZE, ".new-%d-%u", (int)getpid(), atomic_fetch_add(&count, 1));
}

static int add_file(int folder, const struct compute_key *key, const void *data, uint32_t size)
{
    char name[NAME_SIZE], final[NAME_SIZE];

    name_of(key, final);
    name_new_file(name);
    _cleanup_fd_ int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    return fd_put_in_place(folder, name, final, write_file(fd, key, data, size));
}

int compute_store_add(const struct compute_key *key, const void *data, uint32_t size)
{
    uint64_t limit = compute_folder_limit(), all = sizeof(struct header) + key->size + size;

    if (all > limit)
        return -EFBIG;
    _cleanup_fd_ int folder = compute_folder_open(true);
    if (folder < 0)
        return folder;
    compute_folder_shrink(folder, limit - all);
    return add_file(folder, key, data, size);
}
