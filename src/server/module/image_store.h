/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of module images, each kept once. Large images stay in the sealed file in which their
 * client sent them. A later client of the same user is lent that file, finds that its own image is
 * the same, and then need not send it.
 *
 * All functions may be called from any thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cuda_result.h"
#include "list.h"

/* A process may have only so many descriptors and mappings; further images are copied. */
#define IMAGE_STORE_FILES_MAX 4096u

struct image_store {
    pthread_mutex_t lock;
    struct list images; /* struct stored_image; the one that was used last is the last */
    uint64_t last_number;
    unsigned files, files_max;
};

struct stored_image {
    struct image_store *store;
    struct list link; /* in the store; empty when the image is not shared */
    uint64_t number;  /* 0 = not shared: another image has its hash, and this one is never found */
    uint64_t hash, key;
    uint64_t size;
    const void *bytes; /* a NUL is behind them */
    int fd;            /* -1 = a copy in memory */
    uid_t owner;
    unsigned users;
    atomic_bool has_variables; /* a load has found that no two clients may share its library */
};

/* Before any other thread uses it. */
void image_store_init(struct image_store *store);

/* No image is used any more. */
void image_store_fini(struct image_store *store);

/* The image in the first `size` bytes of a file that shm_check() has accepted, with a reference for
 * the caller: the stored one if it is there already, or a new one. Takes `fd` over.
 * CUDA_ERROR_INVALID_VALUE when the file cannot be read, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult image_store_add(struct image_store *store, int fd, uint64_t size, uid_t owner,
                         struct stored_image **ret_image);

/* An image that the same user has sent earlier, by key or by number, with a reference for the
 * caller; NULL when there is none. Only images in a file are found. */
struct stored_image *image_store_find(struct image_store *store, uint64_t key, uint64_t size,
                                      uid_t owner);
struct stored_image *image_store_find_number(struct image_store *store, uint64_t number,
                                             uid_t owner);

/* Another reference to an image that the caller has one to. */
struct stored_image *stored_image_ref(struct stored_image *image);

/* Drops a reference. NULL is allowed. */
void stored_image_unref(struct stored_image *image);
