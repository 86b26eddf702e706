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
#define CODE_FILES_MAX 4096u

struct code_store {
    pthread_mutex_t lock;
    struct list codes; /* struct code; the one that was used last comes last */
    uint64_t last_number;
    unsigned files, files_max;
};

struct code {
    struct code_store *store;
    struct list link; /* in the store; empty when alone */
    uint64_t number;  /* 0 = alone: another image has its hash, and nobody is to find this one */
    uint64_t hash, key;
    uint64_t size;
    const void *bytes; /* a NUL is behind them */
    int fd;            /* -1 = a copy in memory */
    uid_t owner;
    unsigned users;
};

void code_store_init(struct code_store *store);

/* Nobody uses any code any more. */
void code_store_fini(struct code_store *store);

/* Finds images; what has the same one need not be the same. */
uint64_t code_hash(const void *bytes, uint64_t size);

/* The code in the first `size` bytes of a file that shm_check() has accepted: what is there
 * already, or else new. Takes `fd` over. CUDA_ERROR_INVALID_VALUE when it cannot be read. */
CUresult code_enter(struct code_store *store, int fd, uint64_t size, uid_t owner,
                    struct code **ret_code);

/* What the same user has sent earlier, by key or by number; NULL when there is nothing. Only what
 * is in a file is found. */
struct code *code_find(struct code_store *store, uint64_t key, uint64_t size, uid_t owner);
struct code *code_find_number(struct code_store *store, uint64_t number, uid_t owner);

struct code *code_use(struct code *code);

/* NULL is allowed. */
void code_put(struct code *code);
