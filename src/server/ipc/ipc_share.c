/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names. A client finds only names of the same user, and a name ends with its owner.
 */
#include "ipc_share.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "cleanup.h"
#include "map.h"
#include "server.h"

struct ipc_entry {
    struct list link; /* in the session that gave the name out */
    struct session *owner;
    struct ipc_key key;
    struct ipc_item item;
};

struct server_ipc {
    pthread_mutex_t lock; /* of the table and of every reference count */
    struct map names;     /* struct ipc_entry by its key's first word */
};

struct session_ipc {
    struct list names; /* struct ipc_entry: those that the session has given out */
    unsigned count;
};

int server_ipc_init(struct server *server)
{
    server->ipc = calloc(1, sizeof(*server->ipc));
    if (!server->ipc)
        return -ENOMEM;
    pthread_mutex_init(&server->ipc->lock, NULL);
    map_init(&server->ipc->names);
    return 0;
}

void server_ipc_fini(struct server *server)
{
    map_fini(&server->ipc->names);
    free(server->ipc);
}

int session_ipc_init(struct session *session)
{
    session->ipc = calloc(1, sizeof(*session->ipc));
    if (!session->ipc)
        return -ENOMEM;
    list_init(&session->ipc->names);
    return 0;
}

void session_ipc_fini(struct session *session)
{
    free(session->ipc);
}

#define IPC_LOCKED(server) \
    _cleanup_mutex_ pthread_mutex_t *ipc_held = mutex_hold(&(server)->ipc->lock)

struct ipc_share *ipc_share_create(const struct ipc_share *like)
{
    struct ipc_share *share = malloc(sizeof(*share));

    if (!share)
        return NULL;
    *share = *like;
    share->references = 1;
    return share;
}

static bool drop_reference(struct server *server, struct ipc_share *share)
{
    IPC_LOCKED(server);

    return --share->references == 0;
}

static void destroy_events(const struct ipc_share *share)
{
    for (unsigned i = 0; i < ATTACH_DEVICES_MAX; i++) {
        if (share->events[i])
            driver.cuEventDestroy_v2(share->events[i]);
    }
}

void ipc_share_unref(struct server *server, struct ipc_share *share)
{
    if (!share || !drop_reference(server, share))
        return;
    if (share->kind == IPC_MEMORY)
        driver.cuMemRelease(share->memory);
    else
        destroy_events(share);
    free(share);
}

static struct ipc_entry *find_own(struct session *session, const struct ipc_item *item)
{
    list_for_each (struct ipc_entry, entry, &session->ipc->names, link) {
        if (entry->item.share == item->share && entry->item.offset == item->offset)
            return entry;
    }
    return NULL;
}

uint32_t ipc_server_number(void)
{
    return (uint32_t)getpid();
}

/* On a collision of the first word, as unlikely as a guess of it, another key is drawn. */
static CUresult enter_locked(struct server *server, struct ipc_entry *entry)
{
    for (unsigned i = 0; i < 4; i++) {
        if (getrandom(&entry->key, sizeof(entry->key), 0) != sizeof(entry->key))
            return CUDA_ERROR_OPERATING_SYSTEM;
        entry->key.words[1] = entry->key.words[1] >> 32 << 32 | ipc_server_number();
        if (!map_put(&server->ipc->names, entry->key.words[0], entry))
            return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult create_name(struct session *session, const struct ipc_item *item,
                            struct ipc_key *ret_key)
{
    struct ipc_entry *entry = NULL;

    if (session->ipc->count < SESSION_IPC_MAX)
        entry = calloc(1, sizeof(*entry));
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->owner = session;
    entry->item = *item;
    IPC_LOCKED(session->server);
    CUresult result = enter_locked(session->server, entry);
    if (result != CUDA_SUCCESS) {
        free(entry);
        return result;
    }
    item->share->references++;
    list_append(&session->ipc->names, &entry->link);
    session->ipc->count++;
    *ret_key = entry->key;
    return CUDA_SUCCESS;
}

CUresult ipc_name(struct session *session, const struct ipc_item *item, struct ipc_key *ret_key)
{
    const struct ipc_entry *known = find_own(session, item);

    if (!known)
        return create_name(session, item, ret_key);
    *ret_key = known->key;
    return CUDA_SUCCESS;
}

static CUresult find_item(struct session *session, enum ipc_kind kind, struct ipc_key key,
                          struct ipc_item *ret_item)
{
    IPC_LOCKED(session->server);
    const struct ipc_entry *entry = map_get(&session->server->ipc->names, key.words[0]);

    if (!entry || entry->key.words[1] != key.words[1] || entry->item.share->kind != kind ||
        session->identity.uid != entry->owner->identity.uid)
        return CUDA_ERROR_INVALID_VALUE;
    if (entry->owner == session)
        return CUDA_ERROR_INVALID_CONTEXT;
    entry->item.share->references++;
    *ret_item = entry->item;
    return CUDA_SUCCESS;
}

/* A client of another user is only told that there is no such name. */
CUresult ipc_resolve(struct session *session, enum ipc_kind kind, struct ipc_key key,
                     struct ipc_item *ret_item)
{
    CUresult result = find_item(session, kind, key, ret_item);

    if (result == CUDA_ERROR_INVALID_VALUE)
        session_log_error(session,
                          "No program of this user and server has given out this IPC "
                          "handle. Where one of another lane has, this program moves there "
                          "if its class, its domain and its objects let it. Else exchange "
                          "descriptors (cuMemExportToShareableHandle), or run all in one "
                          "class and domain");
    return result;
}

static void entry_destroy(struct session *session, struct ipc_entry *entry)
{
    struct server *server = session->server;

    pthread_mutex_lock(&server->ipc->lock);
    map_remove(&server->ipc->names, entry->key.words[0]);
    pthread_mutex_unlock(&server->ipc->lock);
    list_remove(&entry->link);
    session->ipc->count--;
    session_enter(session, entry->item.share->device);
    ipc_share_unref(server, entry->item.share);
    free(entry);
}

void ipc_withdraw(struct session *session, const struct ipc_share *share)
{
    list_for_each_safe (struct ipc_entry, entry, &session->ipc->names, link) {
        if (entry->item.share == share)
            entry_destroy(session, entry);
    }
}

void ipc_withdraw_part(struct session *session, const struct ipc_share *share, uint64_t offset)
{
    struct ipc_entry *entry =
        find_own(session, &(struct ipc_item){.share = (struct ipc_share *)share, .offset = offset});

    if (entry)
        entry_destroy(session, entry);
}

void ipc_withdraw_all(struct session *session)
{
    list_for_each_safe (struct ipc_entry, entry, &session->ipc->names, link)
        entry_destroy(session, entry);
}
