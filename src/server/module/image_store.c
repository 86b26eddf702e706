/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash finds an image under the lock. A reference keeps the image while the bytes are compared
 * without the lock, because images are large. An image with the same hash and other bytes is a
 * deception or a collision, and is not shared. A shared file is sealed, so no process can write it.
 * All of its pages exist, so a reader is charged for none.
 */
#include "image_store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cleanup.h"
#include "fd.h"
#include "hash.h"
#include "image_key.h"
#include "shm.h"

void image_store_init(struct image_store *store)
{
    *store = (struct image_store){.files_max = IMAGE_STORE_FILES_MAX};
    pthread_mutex_init(&store->lock, NULL);
    list_init(&store->images);
}

void image_store_fini(struct image_store *store)
{
    pthread_mutex_destroy(&store->lock);
}

/* ---- the bytes ---- */

/* Reading a hole would allocate its page, and a huge page may not be available then. */
static bool can_keep_file(int fd, uint64_t size)
{
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);

    return size >= IMAGE_KEY_MIN && seals >= 0 && (seals & F_SEAL_WRITE) && !fstatfs(fd, &system) &&
           system.f_type == TMPFS_MAGIC && !shm_check(fd, size + 1) &&
           lseek(fd, 0, SEEK_HOLE) > (off_t)size;
}

static bool claim_file(struct image_store *store)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    if (store->files >= store->files_max)
        return false;
    store->files++;
    return true;
}

static void release_file(struct image_store *store)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    store->files--;
}

/* Maps the file, with a NUL behind the image. */
static bool map_file(int fd, uint64_t size, void **ret_bytes)
{
    void *bytes;

    if (!can_keep_file(fd, size) || shm_map(fd, size + 1, NULL, SHM_READ_ONLY, &bytes))
        return false;
    if (((const char *)bytes)[size]) {
        shm_unmap(bytes, size + 1);
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

/* Takes the file over when it succeeds. */
static bool map_bytes(struct stored_image *image, int *fd)
{
    void *bytes;

    if (!claim_file(image->store))
        return false;
    if (!map_file(*fd, image->size, &bytes)) {
        release_file(image->store);
        return false;
    }
    image->bytes = bytes;
    image->fd = fd_steal(fd);
    return true;
}

static CUresult read_bytes(struct stored_image *image, int fd)
{
    char *bytes = malloc(image->size + 1);

    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pread_all(fd, bytes, image->size, 0)) {
        free(bytes);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bytes[image->size] = '\0';
    image->bytes = bytes;
    return CUDA_SUCCESS;
}

static void stored_image_destroy(struct stored_image *image)
{
    if (image->fd >= 0) {
        shm_unmap((void *)image->bytes, image->size + 1);
        fd_close(&image->fd);
        release_file(image->store);
    } else {
        free((void *)image->bytes);
    }
    free(image);
}

static CUresult stored_image_create(struct image_store *store, int fd, uint64_t size, uid_t owner,
                                    struct stored_image **ret_image)
{
    _cleanup_fd_ int file = fd;
    struct stored_image *image = calloc(1, sizeof(*image));
    CUresult result = CUDA_SUCCESS;

    if (!image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *image =
        (struct stored_image){.store = store, .size = size, .fd = -1, .owner = owner, .users = 1};
    list_init(&image->link);
    if (!map_bytes(image, &file))
        result = read_bytes(image, file);
    if (result != CUDA_SUCCESS) {
        stored_image_destroy(image);
        return result;
    }
    image->hash = hash_bytes(image->bytes, size);
    image->key = image_key(image->bytes, size);
    *ret_image = image;
    return CUDA_SUCCESS;
}

/* ---- the store ---- */

static struct stored_image *use_locked(struct stored_image *image)
{
    image->users++;
    if (!list_empty(&image->link)) {
        list_remove(&image->link);
        list_append(&image->store->images, &image->link);
    }
    return image;
}

struct stored_image *stored_image_ref(struct stored_image *image)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&image->store->lock);

    return use_locked(image);
}

void stored_image_unref(struct stored_image *image)
{
    bool last;

    if (!image)
        return;
    struct image_store *store = image->store;
    pthread_mutex_lock(&store->lock);
    last = --image->users == 0;
    if (last)
        list_remove(&image->link);
    pthread_mutex_unlock(&store->lock);
    if (last)
        stored_image_destroy(image);
}

/* Finds an image that may be equal. Without one it adds the new image to the store and returns
 * NULL. */
static struct stored_image *find_or_add(struct image_store *store, struct stored_image *added)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    list_for_each (struct stored_image, image, &store->images, link) {
        if (image->hash == added->hash && image->size == added->size)
            return use_locked(image);
    }
    added->number = ++store->last_number;
    list_append(&store->images, &added->link);
    return NULL;
}

CUresult image_store_add(struct image_store *store, int fd, uint64_t size, uid_t owner,
                         struct stored_image **ret_image)
{
    struct stored_image *added, *other;
    CUresult result = stored_image_create(store, fd, size, owner, &added);

    if (result != CUDA_SUCCESS)
        return result;
    other = find_or_add(store, added);
    if (other && memcmp(other->bytes, added->bytes, size) == 0) {
        stored_image_unref(added);
        added = other;
    } else {
        stored_image_unref(other);
    }
    *ret_image = added;
    return CUDA_SUCCESS;
}

struct stored_image *image_store_find(struct image_store *store, uint64_t key, uint64_t size,
                                      uid_t owner)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);
    struct stored_image *found = NULL;

    list_for_each (struct stored_image, image, &store->images, link) {
        if (image->fd >= 0 && image->key == key && image->size == size && image->owner == owner)
            found = image;
    }
    return found ? use_locked(found) : NULL;
}

struct stored_image *image_store_find_number(struct image_store *store, uint64_t number,
                                             uid_t owner)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&store->lock);

    list_for_each (struct stored_image, image, &store->images, link) {
        if (image->fd >= 0 && image->number == number && image->owner == owner)
            return use_locked(image);
    }
    return NULL;
}
