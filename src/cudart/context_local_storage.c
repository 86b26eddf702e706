/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that libraries attach to contexts: a map from (context, key) to a value and its
 * destructor.
 *
 * Each copy of libcudart in the process (the program's, that of cuBLAS, ...) keeps its state of a
 * context here. It looks the state up in almost every call. So a thread caches its last answer, and
 * locks the map only on a miss. The cached answer stays valid until an entry is removed; a counter
 * detects that. Destructors run without the lock, because they take libcudart's own lock, which
 * another thread may hold while it calls in here.
 */
#include "tables.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define BUCKETS 64

typedef void destructor(CUcontext context, void *key, void *value);

struct entry {
    struct entry *next;
    CUcontext context;
    void *key;
    void *value;
    destructor *destroy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];
static atomic_uint removals = 1;

static _Thread_local struct {
    CUcontext context;
    void *key;
    void *value;
    unsigned removals; /* 0: nothing remembered */
} remembered;

static struct entry **bucket_of(CUcontext context, const void *key)
{
    uint64_t mix = ((uintptr_t)context ^ ((uintptr_t)key >> 4)) * 0x9e3779b97f4a7c15;

    return &buckets[mix >> 58];
}

/* The link to the entry, or the end of its bucket. */
static struct entry **find_locked(CUcontext context, const void *key)
{
    struct entry **link = bucket_of(context, key);

    while (*link && ((*link)->context != context || (*link)->key != key))
        link = &(*link)->next;
    return link;
}

/* NULL means the current context. Once a driver is initialized, a context that cannot be used is an
 * invalid handle. */
static CUresult resolve(CUcontext *context)
{
    bool named = *context != NULL;
    CUresult state;

    if (!named)
        *context = cudart_ops->current_context();
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    state = cudart_ops->context_state(*context);
    if (state == CUDA_SUCCESS || state == CUDA_ERROR_DEINITIALIZED ||
        state == CUDA_ERROR_NOT_INITIALIZED)
        return state;
    return named ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult insert_locked(CUcontext context, void *key, void *value, destructor *destroy)
{
    struct entry **link = find_locked(context, key);
    struct entry *entry;

    if (*link)
        return CUDA_ERROR_INVALID_HANDLE;
    entry = malloc(sizeof(*entry));
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *entry = (struct entry){NULL, context, key, value, destroy};
    *link = entry;
    return CUDA_SUCCESS;
}

/* A key that exists keeps its value. */
static CUresult put_value(CUcontext context, void *key, void *value, destructor *destroy)
{
    CUresult result = resolve(&context);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    result = insert_locked(context, key, value, destroy);
    pthread_mutex_unlock(&lock);
    return result;
}

static struct entry *unlink_locked(struct entry **link)
{
    struct entry *entry = *link;

    *link = entry->next;
    atomic_fetch_add(&removals, 1);
    return entry;
}

/* Takes the value away without running its destructor. */
static CUresult delete (CUcontext context, void *key)
{
    CUresult result = resolve(&context);
    struct entry **link;
    struct entry *entry;

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    link = find_locked(context, key);
    entry = *link ? unlink_locked(link) : NULL;
    pthread_mutex_unlock(&lock);
    free(entry);
    return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static bool remember_key(CUcontext context, void *key)
{
    struct entry *entry;

    pthread_mutex_lock(&lock);
    entry = *find_locked(context, key);
    if (entry) {
        remembered.context = context;
        remembered.key = key;
        remembered.value = entry->value;
        remembered.removals = atomic_load(&removals);
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

static bool is_remembered(CUcontext context, const void *key)
{
    return remembered.context == context && remembered.key == key &&
           remembered.removals == atomic_load_explicit(&removals, memory_order_acquire);
}

/* A missing key leaves ret_value as it was. */
static CUresult get_value(void **ret_value, CUcontext context, void *key)
{
    CUresult result = resolve(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!is_remembered(context, key) && !remember_key(context, key))
        return CUDA_ERROR_INVALID_HANDLE;
    *ret_value = remembered.value;
    return CUDA_SUCCESS;
}

static struct entry *unlink_context_locked(CUcontext context)
{
    struct entry *gone = NULL;

    for (int i = 0; i < BUCKETS; i++) {
        struct entry **link = &buckets[i];

        while (*link) {
            struct entry *entry;

            if ((*link)->context != context) {
                link = &(*link)->next;
                continue;
            }
            entry = unlink_locked(link);
            entry->next = gone;
            gone = entry;
        }
    }
    return gone;
}

void cudart_context_gone(CUcontext context)
{
    struct entry *gone;

    pthread_mutex_lock(&lock);
    gone = unlink_context_locked(context);
    pthread_mutex_unlock(&lock);

    while (gone) {
        struct entry *entry = gone;

        gone = entry->next;
        if (entry->destroy)
            entry->destroy(entry->context, entry->key, entry->value);
        free(entry);
    }
}

const table_word context_local_storage_table[4] = {put_value, delete, get_value, NULL};
