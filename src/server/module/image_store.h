/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of images, each kept once. Large ones stay in the sealed file in which their client
 * sent them. A later client of the same user is lent that file, finds that its own image is the
 * same, and then need not send it.
 */
#pragma once

#include <pthread.h>
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
    struct list images; /* struct stored_image; the one that was used last comes last */
    uint64_t last_number;
    unsigned files, files_max;
};

struct stored_image {
    struct image_store *store;
    struct list link; /* in the store; empty when alone */
    uint64_t number;  /* 0 = alone: another image has its hash, and nobody is to find this one */
    uint64_t hash, key;
    uint64_t size;
    const void *bytes; /* a NUL is behind them */
    int fd;            /* -1 = a copy in memory */
    uid_t owner;
    unsigned users;
};

void image_store_init(struct image_store *store);

/* Nobody uses any code any more. */
void image_store_fini(struct image_store *store);

/* Finds images; what has the same one need not be the same. */
uint64_t image_store_hash(const void *bytes, uint64_t size);

/* The code in the first `size` bytes of a file that shm_check() has accepted: what is there
 * already, or else new. Takes `fd` over. CUDA_ERROR_INVALID_VALUE when it cannot be read. */
CUresult image_store_add(struct image_store *store, int fd, uint64_t size, uid_t owner,
                         struct stored_image **ret_image);

/* What the same user has sent earlier, by key or by number; NULL when there is nothing. Only what
 * is in a file is found. */
struct stored_image *image_store_find(struct image_store *store, uint64_t key, uint64_t size,
                                      uid_t owner);
struct stored_image *image_store_find_number(struct image_store *store, uint64_t number,
                                             uid_t owner);

struct stored_image *stored_image_ref(struct stored_image *image);

/* NULL is allowed. */
void stored_image_unref(struct stored_image *image);
