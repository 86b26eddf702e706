/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of module images, each stored once. A large image stays in the sealed file of the
 * client that sent it. The server shares that file with later clients of the same user. Such a
 * client compares it with its own image and, if they are equal, need not send it.
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

/* Limits the descriptors and mappings of the process; further images are copied. */
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
    uint64_t number;  /* 0 = not shared, because another image has its hash */
    uint64_t hash, key;
    uint64_t size;
    const void *bytes; /* a NUL is behind them */
    int fd;            /* -1 = a copy in memory */
    uid_t owner;
    unsigned users;
    atomic_bool has_variables; /* a load has shown that clients cannot share its library */
};

/* Before any other thread uses it. */
void image_store_init(struct image_store *store);

/* No image is used any more. */
void image_store_fini(struct image_store *store);

/* The image in the first `size` bytes of a file that shm_check() has accepted, with a reference for
 * the caller. An image that is cached is returned, else a new one is stored. Takes `fd` over.
 * CUDA_ERROR_INVALID_VALUE when the file cannot be read, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult image_store_add(struct image_store *store, int fd, uint64_t size, uid_t owner,
                         struct stored_image **ret_image);

/* An image that the same user has sent earlier, by key or by number, with a reference for the
 * caller; NULL when there is none. Only images in a file are found. */
struct stored_image *image_store_find(struct image_store *store, uint64_t key, uint64_t size,
                                      uid_t owner);
struct stored_image *image_store_find_number(struct image_store *store, uint64_t number,
                                             uid_t owner);

/* Takes another reference; the caller has one. */
struct stored_image *stored_image_ref(struct stored_image *image);

/* Drops a reference. NULL is allowed. */
void stored_image_unref(struct stored_image *image);
