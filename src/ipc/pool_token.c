/* SPDX-License-Identifier: Apache-2.0 */
/* Names of shared pools; see pool_token.h. */
#include "pool_token.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "cleanup.h"
#include "fd.h"
#include "shm.h"

#define KEY_OFFSET (POOL_POINTER_SIZE - sizeof(((struct pool_token *)0)->key))

_Static_assert(KEY_OFFSET >= POOL_POINTER_HANDLE_SIZE, "handle and key fit");

static const char magic[8] = "FunlPool";

struct pool_file {
    char magic[8];
    struct pool_token token;
};

int pool_token_make(uint32_t device, struct pool_token *ret_token)
{
    struct pool_token token = {.device = device};

    if (getrandom(token.key, sizeof(token.key), 0) != (ssize_t)sizeof(token.key))
        return -EIO;
    *ret_token = token;
    return 0;
}

bool pool_token_equal(const struct pool_token *one, const struct pool_token *other)
{
    return memcmp(one->key, other->key, sizeof(one->key)) == 0;
}

int pool_token_write(const struct pool_token *token, int *ret_fd)
{
    struct pool_file file = {.token = *token};

    memcpy(file.magic, magic, sizeof(magic));
    return shm_create_read_only("funnel-pool", &file, sizeof(file), ret_fd);
}

int pool_token_read(int fd, struct pool_token *ret_token)
{
    struct pool_file file;

    if (shm_check(fd, sizeof(file)) || pread_all(fd, &file, sizeof(file), 0) ||
        memcmp(file.magic, magic, sizeof(magic)))
        return -EINVAL;
    *ret_token = file.token;
    return 0;
}

void pool_pointer_write(void *bytes, const void *handle, const struct pool_token *pool)
{
    memset(bytes, 0, POOL_POINTER_SIZE);
    memcpy(bytes, handle, POOL_POINTER_HANDLE_SIZE);
    memcpy((char *)bytes + KEY_OFFSET, pool->key, sizeof(pool->key));
}

bool pool_pointer_read(const void *bytes, const struct pool_token *pool, void *ret_handle)
{
    if (memcmp((const char *)bytes + KEY_OFFSET, pool->key, sizeof(pool->key)))
        return false;
    memset(ret_handle, 0, POOL_POINTER_SIZE);
    memcpy(ret_handle, bytes, POOL_POINTER_HANDLE_SIZE);
    return true;
}
