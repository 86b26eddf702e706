/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_buffer.h. */
#include "cupti_buffer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"

/* What the program gave. */
struct buffer {
    uint8_t *data;
    size_t size, used;
    size_t records, records_max; /* 0 = as many as there is space for */
};

struct full_buffer {
    struct buffer buffer;
    struct full_buffer *next;
};

static pthread_mutex_t buffer_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static cupti_request_buffer request_buffer;
static cupti_complete_buffer complete_buffer;
static struct buffer current; /* data NULL: none */
static struct full_buffer *full, **full_end = &full;
static atomic_bool has_full; /* written with the lock */
static size_t dropped;

static _Atomic uint64_t period_ns, ended_ns; /* of the buffers' ends, and when one was last ended */

static pthread_mutex_t deliver_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the other one */
static __thread bool delivers; /* the thread is in the program's callback, with that lock */

static const uint16_t record_sizes[CUPTI_KINDS] = {
    [CUPTI_KIND_MEMCPY] = sizeof(struct cupti_copy),
    [CUPTI_KIND_MEMSET] = sizeof(struct cupti_memset),
    [CUPTI_KIND_KERNEL] = sizeof(struct cupti_kernel),
    [CUPTI_KIND_DRIVER] = sizeof(struct cupti_call),
    [CUPTI_KIND_RUNTIME] = sizeof(struct cupti_call),
    [CUPTI_KIND_DEVICE] = sizeof(struct cupti_device),
    [CUPTI_KIND_CONTEXT] = sizeof(struct cupti_context),
    [CUPTI_KIND_CONCURRENT_KERNEL] = sizeof(struct cupti_kernel),
    [CUPTI_KIND_NAME] = sizeof(struct cupti_name),
    [CUPTI_KIND_MARKER] = sizeof(struct cupti_marker),
    [CUPTI_KIND_MARKER_DATA] = sizeof(struct cupti_marker_data),
    [CUPTI_KIND_OVERHEAD] = sizeof(struct cupti_overhead),
    [CUPTI_KIND_MEMCPY2] = sizeof(struct cupti_peer_copy),
    [CUPTI_KIND_CUDA_EVENT] = sizeof(struct cupti_event),
    [CUPTI_KIND_STREAM] = sizeof(struct cupti_stream),
    [CUPTI_KIND_SYNCHRONIZATION] = sizeof(struct cupti_wait),
    [CUPTI_KIND_EXTERNAL_CORRELATION] = sizeof(struct cupti_external),
    [CUPTI_KIND_MEMORY2] = sizeof(struct cupti_memory),
    [CUPTI_KIND_MEMORY_POOL] = sizeof(struct cupti_pool),
    [CUPTI_KIND_GRAPH_TRACE] = sizeof(struct cupti_graph),
};

size_t cupti_record_size(uint32_t kind)
{
    return kind < CUPTI_KINDS ? record_sizes[kind] : 0;
}

CUptiResult cupti_buffer_set_callbacks(cupti_request_buffer request, cupti_complete_buffer complete)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&buffer_lock);

    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    request_buffer = request;
    complete_buffer = complete;
    return CUPTI_SUCCESS;
}

static bool has_capacity(size_t size)
{
    return current.data && current.size - current.used >= size &&
           (!current.records_max || current.records < current.records_max);
}

/* Without memory for the list the records are lost, and the program keeps its buffer. */
static void queue_current(void)
{
    struct full_buffer *made = current.data ? malloc(sizeof(*made)) : NULL;

    if (made) {
        *made = (struct full_buffer){.buffer = current};
        *full_end = made;
        full_end = &made->next;
        atomic_store_explicit(&has_full, true, memory_order_relaxed);
    }
    current = (struct buffer){.data = NULL};
}

static bool get_buffer(size_t size)
{
    queue_current();
    if (request_buffer)
        request_buffer(&current.data, &current.size, &current.records_max);
    if (has_capacity(size))
        return true;
    queue_current();
    return false;
}

void cupti_buffer_append(const void *record)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&buffer_lock);
    uint32_t kind;
    size_t size;

    memcpy(&kind, record, sizeof(kind));
    size = cupti_record_size(kind);
    if (!has_capacity(size) && !get_buffer(size)) {
        dropped++;
        return;
    }
    memcpy(current.data + current.used, record, size);
    current.used += size;
    current.records++;
}

static struct full_buffer *take_full(cupti_complete_buffer *ret_complete)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&buffer_lock);
    struct full_buffer *first = full;

    if (first && !(full = first->next))
        full_end = &full;
    atomic_store_explicit(&has_full, full != NULL, memory_order_relaxed);
    *ret_complete = complete_buffer;
    return first;
}

static void deliver_locked(void)
{
    cupti_complete_buffer complete;
    struct full_buffer *one;

    delivers = true;
    while ((one = take_full(&complete)) != NULL) {
        complete(NULL, 0, one->buffer.data, one->buffer.size, one->buffer.used);
        free(one);
    }
    delivers = false;
}

static void end_current(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&buffer_lock);

    queue_current();
    atomic_store_explicit(&ended_ns, clock_ns(), memory_order_relaxed);
}

void cupti_buffer_set_period(uint32_t period_ms)
{
    atomic_store_explicit(&period_ns, period_ms * (uint64_t)NS_PER_MS, memory_order_relaxed);
}

static bool is_period_over(void)
{
    uint64_t period = atomic_load_explicit(&period_ns, memory_order_relaxed);

    return period && clock_ns() - atomic_load_explicit(&ended_ns, memory_order_relaxed) >= period;
}

/* The callback of the program may wait for another thread that delivers, so this does not. */
void cupti_buffer_deliver_due(void)
{
    if (is_period_over())
        end_current();
    if (!atomic_load_explicit(&has_full, memory_order_relaxed) || delivers ||
        pthread_mutex_trylock(&deliver_lock))
        return;
    deliver_locked();
    pthread_mutex_unlock(&deliver_lock);
}

void cupti_buffer_deliver_all(void)
{
    end_current();
    if (delivers)
        return;
    pthread_mutex_lock(&deliver_lock);
    deliver_locked();
    pthread_mutex_unlock(&deliver_lock);
}

void cupti_buffer_after_fork(void)
{
    pthread_mutex_init(&buffer_lock, NULL);
    pthread_mutex_init(&deliver_lock, NULL);
    current = (struct buffer){.data = NULL};
    full = NULL;
    full_end = &full;
    delivers = false;
    atomic_store_explicit(&has_full, false, memory_order_relaxed);
}

size_t cupti_buffer_take_dropped(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&buffer_lock);
    size_t count = dropped;

    dropped = 0;
    return count;
}
