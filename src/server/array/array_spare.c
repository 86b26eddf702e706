/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unused arrays, kept for the next client that creates an array of the same shape. Destroying an
 * array waits until the GPU is idle, and blocks every client of the context. Programs tend to
 * create the same arrays again.
 */
#include "array_spare.h"

#include <stdlib.h>
#include <string.h>

#include "array_state.h"
#include "cleanup.h"

/* Bytes of one device; an array larger than half of this is not kept. */
#define SPARE_BYTES_MAX (64ull << 20)

struct spare {
    struct list link;
    struct array array;
};

static struct array take_out_locked(struct spare *spare)
{
    const struct array array = spare->array;

    list_remove(&spare->link);
    array.device->arrays->spare_bytes -= array.charged;
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
    struct device_arrays *arrays = array->device->arrays;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&arrays->spare_lock);

    list_for_each (struct spare, spare, &arrays->spares, link) {
        if (!is_alike(&spare->array, array))
            continue;
        const struct array found = take_out_locked(spare);
        array->driver = found.driver;
        array->mipmap = found.mipmap;
        return true;
    }
    return false;
}

/* Takes the oldest array out when `bytes` more would exceed the limit. */
static bool take_surplus(struct device_arrays *arrays, uint64_t bytes, struct array *ret_oldest)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&arrays->spare_lock);
    struct spare *oldest = list_first(&arrays->spares, struct spare, link);
    if (!oldest || arrays->spare_bytes + bytes <= SPARE_BYTES_MAX)
        return false;
    *ret_oldest = take_out_locked(oldest);
    return true;
}

void array_spare_keep(struct session *session, const struct array *array)
{
    struct device_arrays *arrays = array->device->arrays;
    struct spare *spare = array->charged <= SPARE_BYTES_MAX / 2 ? malloc(sizeof(*spare)) : NULL;
    struct array oldest;

    if (!spare) {
        array_destroy_driver(session, array);
        return;
    }
    spare->array = *array;
    while (take_surplus(arrays, array->charged, &oldest))
        array_destroy_driver(session, &oldest);
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&arrays->spare_lock);
    list_append(&arrays->spares, &spare->link);
    arrays->spare_bytes += array->charged;
}

bool array_spares_give_way(struct session *session, const struct device *device)
{
    struct array oldest;
    bool any = false;

    for (; take_surplus(device->arrays, SPARE_BYTES_MAX, &oldest); any = true)
        array_destroy_driver(session, &oldest);
    return any;
}
