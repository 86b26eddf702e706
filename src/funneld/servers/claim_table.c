/* SPDX-License-Identifier: Apache-2.0 */
/* See claim_table.h. */
#include "claim_table.h"

#include <stdint.h>

#include "claims.h"
#include "fd.h"
#include "shm.h"

#define USERS_MAX 256u

struct claim_table {
    int fd; /* valid where `used` is not 0 */
    uid_t uid;
    uint64_t used; /* when a server was started with it last, counted in starts; 0 = never */
};

/* Zeros are free places. The main thread's, like all of the daemon. */
static struct claim_table tables[USERS_MAX];

static struct claim_table *find_table(uid_t uid)
{
    struct claim_table *oldest = &tables[0];

    for (unsigned i = 0; i < USERS_MAX; i++) {
        if (tables[i].used && tables[i].uid == uid)
            return &tables[i];
        if (tables[i].used < oldest->used)
            oldest = &tables[i];
    }
    return oldest;
}

static int renew(struct claim_table *table, uid_t uid)
{
    int fd;
    int error = shm_create("funnel-claims", sizeof(struct claims), &fd);

    if (error)
        return error;
    if (table->used)
        fd_close(&table->fd);
    table->fd = fd;
    table->uid = uid;
    return 0;
}

int claim_table_of(uid_t uid)
{
    static uint64_t starts;
    struct claim_table *table = find_table(uid);

    if (!table->used || table->uid != uid) {
        int error = renew(table, uid);

        if (error)
            return error;
    }
    table->used = ++starts;
    return table->fd;
}

struct claims *claim_table_map(uid_t uid)
{
    int fd = claim_table_of(uid);
    void *address = NULL;

    if (fd < 0 || shm_map(fd, sizeof(struct claims), NULL, 0, &address))
        return NULL;
    return address;
}
