/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in memory that a stream writes or waits for. A wait that does not hold yet is looked at
 * again by one thread for all of them, which slows down while nothing happens.
 */
#include <sched.h>
#include <time.h>

#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

#define EAGER_LOOKS 200
#define LONGEST_PAUSE_NS 500000

struct value {
    struct operation operation;
    uint64_t address;
    uint64_t value;
    unsigned flags;
    bool is_wide;
    struct list waiting;
};

static struct list waits = {&waits, &waits};
static pthread_cond_t waits_appeared = PTHREAD_COND_INITIALIZER;
static bool watching;

static bool holds(const struct value *wait)
{
    uint64_t now, mask = wait->is_wide ? UINT64_MAX : UINT32_MAX;

    if (wait->is_wide)
        now = __atomic_load_n((uint64_t *)wait->address, __ATOMIC_ACQUIRE);
    else
        now = __atomic_load_n((uint32_t *)wait->address, __ATOMIC_ACQUIRE);
    switch (wait->flags & ~CU_STREAM_WAIT_VALUE_FLUSH) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return wait->is_wide ? (int64_t)(now - wait->value) >= 0
                             : (int32_t)((uint32_t)now - (uint32_t)wait->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == (wait->value & mask);
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & wait->value) != 0;
    default:
        return (~(now | wait->value) & mask) != 0;
    }
}

/* Ends the waits that hold, or whose context has failed: whether there were any. */
static bool look_locked(void)
{
    struct list done;
    bool any;

    list_init(&done);
    list_for_each_safe(struct value, wait, &waits, waiting)
    {
        if (wait->operation.context->error || holds(wait)) {
            list_remove(&wait->waiting);
            list_append(&done, &wait->waiting);
        }
    }
    any = !list_empty(&done);
    while (!list_empty(&done)) {
        struct value *wait = list_first(&done, struct value, waiting);

        list_remove(&wait->waiting);
        operation_finish_locked(&wait->operation);
    }
    return any;
}

static void pause_between_looks(unsigned looks)
{
    struct timespec pause = {.tv_nsec = 20000ll * (looks - EAGER_LOOKS + 1)};

    if (looks < EAGER_LOOKS) {
        sched_yield();
        return;
    }
    if (pause.tv_nsec > LONGEST_PAUSE_NS)
        pause.tv_nsec = LONGEST_PAUSE_NS;
    nanosleep(&pause, NULL);
}

static void *watch(void *unused)
{
    unsigned looks = 0;

    for (;;) {
        pthread_mutex_lock(&soft_lock);
        while (list_empty(&waits)) {
            pthread_cond_wait(&waits_appeared, &soft_lock);
            looks = 0;
        }
        if (look_locked())
            looks = 0;
        pthread_mutex_unlock(&soft_lock);
        pause_between_looks(looks++);
    }
    return unused;
}

static bool wait_start_locked(struct operation *operation)
{
    struct value *wait = (struct value *)operation;

    if (holds(wait))
        return true;
    list_append(&waits, &wait->waiting);
    if (!watching)
        watching = soft_thread_start(watch, NULL);
    pthread_cond_signal(&waits_appeared);
    return false;
}

static bool write_start_locked(struct operation *operation)
{
    struct value *write = (struct value *)operation;

    if (write->is_wide)
        __atomic_store_n((uint64_t *)write->address, write->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)write->address, (uint32_t)write->value, __ATOMIC_RELEASE);
    return true;
}

static const struct operation_type wait_type = {.start_locked = wait_start_locked};
static const struct operation_type write_type = {.start_locked = write_start_locked};

static CUresult submit(const struct operation_type *type, CUstream handle, CUdeviceptr address,
                       uint64_t number, unsigned flags, bool is_wide)
{
    unsigned size = is_wide ? 8 : 4;
    struct stream *stream;
    struct value *value;
    SOFT_LOCKED;
    CUresult result = stream_use_locked(handle, &stream);

    if (result)
        return result;
    if (address % size || !memory_covers_locked(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    value = operation_create(sizeof(*value), type);
    if (!value)
        return CUDA_ERROR_OUT_OF_MEMORY;
    value->address = address;
    value->value = number;
    value->flags = flags;
    value->is_wide = is_wide;
    schedule_enqueue_locked(stream, &value->operation);
    operation_unref_locked(&value->operation);
    return CUDA_SUCCESS;
}

static CUresult submit_wait(CUstream stream, CUdeviceptr address, uint64_t number, unsigned flags,
                            bool is_wide)
{
    if ((flags & ~CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    return submit(&wait_type, stream, address, number, flags, is_wide);
}

static CUresult submit_write(CUstream stream, CUdeviceptr address, uint64_t number, unsigned flags,
                             bool is_wide)
{
    if (flags & ~CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(&write_type, stream, address, number, flags, is_wide);
}

CUresult soft_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                     unsigned int flags)
{
    return submit_wait(stream, addr, value, flags, false);
}

CUresult soft_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                     unsigned int flags)
{
    return submit_wait(stream, addr, value, flags, true);
}

CUresult soft_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                      unsigned int flags)
{
    return submit_write(stream, addr, value, flags, false);
}

CUresult soft_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                      unsigned int flags)
{
    return submit_write(stream, addr, value, flags, true);
}
