/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools that processes share. The descriptor of an exported pool is a sealed memory file
 * that holds the pool's name; it is no memory of the pool. An allocation of the pool is named by 64
 * bytes: the handle by which other processes open the allocation, and the name of its pool. The
 * functions hold no state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pool_token {
    uint64_t key[2]; /* random; zeros: no pool */
    uint32_t device; /* the number that all processes have for the pool's device */
};

/* The first bytes of an allocation's name; the pool's follows. */
#define POOL_POINTER_HANDLE_SIZE 40u
#define POOL_POINTER_SIZE 64u

/* Whether it is a pool's name. */
static inline bool pool_token_is_set(const struct pool_token *token)
{
    return token->key[0] || token->key[1];
}

/* A new name: 0 or -errno. */
int pool_token_make(uint32_t device, struct pool_token *ret_token);

bool pool_token_equal(const struct pool_token *one, const struct pool_token *other);

/* A descriptor for the caller to close, and what one holds: 0; -EINVAL when it is no exported pool;
 * -errno. */
int pool_token_write(const struct pool_token *token, int *ret_fd);
int pool_token_read(int fd, struct pool_token *ret_token);

/* The 64 bytes of an allocation: `handle` has POOL_POINTER_HANDLE_SIZE bytes. */
void pool_pointer_write(void *bytes, const void *handle, const struct pool_token *pool);
/* Whether they are of this pool; then `ret_handle` gets 64 bytes, the handle and zeros. */
bool pool_pointer_read(const void *bytes, const struct pool_token *pool, void *ret_handle);
