/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store. The hash finds a code under the lock; bytes are compared when it is held and the lock
 * is not, for images are large. One of the same hash and other bytes is somebody's trick or very
 * bad luck, and stays alone. What is lent can never be written again: its file is sealed, and all
 * of it is there, so reading it takes no memory that its sender has not paid for.
 */
#include "code.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "image_key.h"
#include "shm.h"

void code_store_init(struct code_store *store)
{
    *store = (struct code_store){.files_max = CODE_FILES_MAX};
    pthread_mutex_init(&store->lock, NULL);
    list_init(&store->codes);
}

void code_store_fini(struct code_store *store)
{
    pthread_mutex_destroy(&store->lock);
}

uint64_t code_hash(const void *bytes, uint64_t size)
{
    const unsigned char *next = bytes;
    uint64_t hash = size, word = 0;

    for (; size >= sizeof(word); size -= sizeof(word), next += sizeof(word)) {
        memcpy(&word, next, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, next, size);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* ---- the bytes ---- */

/* A hole would be filled when it is read, and a huge page may not be there then. */
static bool may_stay(int fd, uint64_t size)
{
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);

    return size >= IMAGE_KEY_MIN && seals >= 0 && (seals & F_SEAL_WRITE) && !fstatfs(fd, &system) &&
           system.f_type == TMPFS_MAGIC && !shm_check(fd, size + 1) &&
           lseek(fd, 0, SEEK_HOLE) > (off_t)size;
}

static bool count_file(struct code_store *store)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    if (store->files >= store->files_max)
        return false;
    store->files++;
    return true;
}

static void discount_file(struct code_store *store)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    store->files--;
}

/* Mapped, with a NUL behind it. */
static bool map_file(int fd, uint64_t size, void **ret_bytes)
{
    void *bytes;

    if (!may_stay(fd, size) || shm_map(fd, size + 1, NULL, SHM_READ_ONLY, &bytes))
        return false;
    if (((const char *)bytes)[size]) {
        shm_unmap(bytes, size + 1);
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

/* Takes the file over when that succeeds. */
static bool map_bytes(struct code *code, int *fd)
{
    void *bytes;

    if (!count_file(code->store))
        return false;
    if (!map_file(*fd, code->size, &bytes)) {
        discount_file(code->store);
        return false;
    }
    code->bytes = bytes;
    code->fd = fd_steal(fd);
    return true;
}

static CUresult copy_bytes(struct code *code, int fd)
{
    char *bytes = malloc(code->size + 1);

    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pread_all(fd, bytes, code->size, 0)) {
        free(bytes);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bytes[code->size] = '\0';
    code->bytes = bytes;
    return CUDA_SUCCESS;
}

static void code_destroy(struct code *code)
{
    if (code->fd >= 0) {
        shm_unmap((void *)code->bytes, code->size + 1);
        fd_close(&code->fd);
        discount_file(code->store);
    } else {
        free((void *)code->bytes);
    }
    free(code);
}

static CUresult code_create(struct code_store *store, int fd, uint64_t size, uid_t owner,
                            struct code **ret_code)
{
    _cleanup_fd_ int file = fd;
    struct code *code = calloc(1, sizeof(*code));
    CUresult result = CUDA_SUCCESS;

    if (!code)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *code = (struct code){.store = store, .size = size, .fd = -1, .owner = owner, .users = 1};
    list_init(&code->link);
    if (!map_bytes(code, &file))
        result = copy_bytes(code, file);
    if (result != CUDA_SUCCESS) {
        code_destroy(code);
        return result;
    }
    code->hash = code_hash(code->bytes, size);
    code->key = image_key(code->bytes, size);
    *ret_code = code;
    return CUDA_SUCCESS;
}

/* ---- the store ---- */

static struct code *use_locked(struct code *code)
{
    code->users++;
    if (!list_empty(&code->link)) {
        list_remove(&code->link);
        list_append(&code->store->codes, &code->link);
    }
    return code;
}

struct code *code_use(struct code *code)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&code->store->lock);

    return use_locked(code);
}

void code_put(struct code *code)
{
    bool last;

    if (!code)
        return;
    struct code_store *store = code->store;
    pthread_mutex_lock(&store->lock);
    last = --code->users == 0;
    if (last)
        list_remove(&code->link);
    pthread_mutex_unlock(&store->lock);
    if (last)
        code_destroy(code);
}

/* Another one that may be the same; if there is none, the new one is in the store. */
static struct code *find_or_add(struct code_store *store, struct code *added)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    list_for_each(struct code, code, &store->codes, link)
    {
        if (code->hash == added->hash && code->size == added->size)
            return use_locked(code);
    }
    added->number = ++store->last_number;
    list_append(&store->codes, &added->link);
    return NULL;
}

CUresult code_enter(struct code_store *store, int fd, uint64_t size, uid_t owner,
                    struct code **ret_code)
{
    struct code *added, *other;
    CUresult result = code_create(store, fd, size, owner, &added);

    if (result != CUDA_SUCCESS)
        return result;
    other = find_or_add(store, added);
    if (other && memcmp(other->bytes, added->bytes, size) == 0) {
        code_put(added);
        added = other;
    } else {
        code_put(other);
    }
    *ret_code = added;
    return CUDA_SUCCESS;
}

struct code *code_find(struct code_store *store, uint64_t key, uint64_t size, uid_t owner)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);
    struct code *found = NULL;

    list_for_each(struct code, code, &store->codes, link)
    {
        if (code->fd >= 0 && code->key == key && code->size == size && code->owner == owner)
            found = code;
    }
    return found ? use_locked(found) : NULL;
}

struct code *code_find_number(struct code_store *store, uint64_t number, uid_t owner)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    list_for_each(struct code, code, &store->codes, link)
    {
        if (code->fd >= 0 && code->number == number && code->owner == owner)
            return use_locked(code);
    }
    return NULL;
}
