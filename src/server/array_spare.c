/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that nobody has any more, kept for the next that asks for one like it: to destroy an array
 * is to wait until the GPU is idle, and every client of the context waits along. Programs tend to
 * make the same arrays again.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"

/* Of one device; what is larger than half of it is not kept. */
#define SPARE_BYTES_MAX (64ull << 20)

struct spare {
    struct list link;
    struct array array;
};

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct list arrays; /* oldest first */
    uint64_t bytes;
} spares[SERVER_MAX_DEVICES];

static void init_locked(unsigned ordinal)
{
    if (!spares[ordinal].arrays.next)
        list_init(&spares[ordinal].arrays);
}

static struct array take_out_locked(struct spare *spare)
{
    const struct array array = spare->array;

    list_remove(&spare->link);
    spares[array.device->ordinal].bytes -= array.charged;
    free(spare);
    return array;
}

static bool is_alike(const struct array *one, const struct array *other)
{
    const CUDA_ARRAY3D_DESCRIPTOR *a = &one->descriptor, *b = &other->descriptor;

    return one->levels == other->levels && a->Width == b->Width && a->Height == b->Height &&
           a->Depth == b->Depth && a->Format == b->Format && a->NumChannels == b->NumChannels &&
           a->Flags == b->Flags;
}

bool array_spare_take(struct array *array)
{
    unsigned ordinal = (unsigned)array->device->ordinal;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&spare_lock);

    init_locked(ordinal);
    list_for_each(struct spare, spare, &spares[ordinal].arrays, link)
    {
        if (!is_alike(&spare->array, array))
            continue;
        const struct array found = take_out_locked(spare);
        array->driver = found.driver;
        array->mipmap = found.mipmap;
        return true;
    }
    return false;
}

/* True with the oldest one, when there is no room for so much more. */
static bool make_room(unsigned ordinal, uint64_t bytes, struct array *ret_oldest)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&spare_lock);
    struct spare *oldest;

    init_locked(ordinal);
    oldest = list_first(&spares[ordinal].arrays, struct spare, link);
    if (!oldest || spares[ordinal].bytes + bytes <= SPARE_BYTES_MAX)
        return false;
    *ret_oldest = take_out_locked(oldest);
    return true;
}

void array_spare_keep(const struct array *array)
{
    unsigned ordinal = (unsigned)array->device->ordinal;
    struct spare *spare = array->charged <= SPARE_BYTES_MAX / 2 ? malloc(sizeof(*spare)) : NULL;
    struct array oldest;

    if (!spare) {
        array_destroy_driver(array);
        return;
    }
    spare->array = *array;
    while (make_room(ordinal, array->charged, &oldest))
        array_destroy_driver(&oldest);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&spare_lock);
    list_append(&spares[ordinal].arrays, &spare->link);
    spares[ordinal].bytes += array->charged;
}
