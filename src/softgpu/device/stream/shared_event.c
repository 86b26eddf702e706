/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that several processes have. Each record has the next number. It is done when its mark, in
 * a page that all map, has reached the number, or when the process that made it is gone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fd.h"
#include "ipc_file.h"
#include "shared_event.h"
#include "soft_context.h"
#include "soft_event.h"
#include "soft_stream.h"
#include "watch_operation.h"

struct shared_event {
    unsigned references; /* of the event here, and of operations */
    struct ipc_slot *slot;
    int number; /* of our own slot, or -1 */
};

static CUresult adopt_slot(struct ipc_slot *slot, int number, struct shared_event **ret_event)
{
    struct shared_event *event = calloc(1, sizeof(*event));

    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct shared_event){.references = 1, .slot = slot, .number = number};
    *ret_event = event;
    return CUDA_SUCCESS;
}

CUresult shared_event_create_locked(struct shared_event **ret_event)
{
    struct ipc_slot *slot;
    int number = ipc_slot_take_locked(&slot);
    CUresult result;

    if (number < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = adopt_slot(slot, number, ret_event);
    if (result)
        ipc_slot_give_locked(number);
    else
        __atomic_store_n(&slot->kind, IPC_EVENT, __ATOMIC_RELEASE);
    return result;
}

void shared_event_unref_locked(struct shared_event *event)
{
    if (!event || --event->references > 0)
        return;
    if (event->number >= 0)
        ipc_slot_give_locked(event->number);
    else
        ipc_slot_unmap(event->slot);
    free(event);
}

/* ---- how far a record is ---- */

/* Partner: the store in record_start_locked() of whichever process recorded. */
static bool is_marked(const struct ipc_event *event, uint64_t number)
{
    uint64_t done = __atomic_load_n(&event->marks[number % IPC_EVENT_MARKS].done, __ATOMIC_ACQUIRE);

    return done >= number;
}

/* A process that has ended but was not waited for is gone as well, which kill() does not tell. */
static bool process_is_gone(pid_t pid)
{
    _cleanup_fd_ int fd = -1;
    struct pollfd poller = {.events = POLLIN};

    if (pid <= 0 || pid == getpid())
        return false;
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH || (errno == ENOSYS && kill(pid, 0) < 0 && errno == ESRCH);
    poller.fd = fd;
    return poll(&poller, 1, 0) > 0;
}

static bool is_over(const struct ipc_event *event, uint64_t number)
{
    return is_marked(event, number) || process_is_gone(event->marks[number % IPC_EVENT_MARKS].pid);
}

static uint64_t last_record(const struct shared_event *event)
{
    return __atomic_load_n(&event->slot->event.recorded, __ATOMIC_ACQUIRE);
}

bool shared_event_is_done(const struct shared_event *event)
{
    uint64_t number = last_record(event);

    return number == 0 || is_over(&event->slot->event, number);
}

void shared_event_wait_locked(struct shared_event *event)
{
    struct timespec pause = {.tv_nsec = 20000};
    uint64_t number = last_record(event);

    if (number == 0)
        return;
    event->references++;
    while (!is_over(&event->slot->event, number)) {
        pthread_mutex_unlock(&soft_lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&soft_lock);
        if (pause.tv_nsec < 1000000)
            pause.tv_nsec *= 2;
    }
    shared_event_unref_locked(event);
}

/* ---- in streams ---- */

struct mark {
    struct operation operation;
    struct shared_event *event;
    uint64_t number;
};

static bool record_start_locked(struct operation *operation)
{
    struct mark *mark = (struct mark *)operation;
    uint64_t *done = &mark->event->slot->event.marks[mark->number % IPC_EVENT_MARKS].done;

    __atomic_store_n(done, mark->number, __ATOMIC_RELEASE);
    return true;
}

static void mark_fini(struct operation *operation)
{
    shared_event_unref_locked(((struct mark *)operation)->event);
}

/* Also when the context has failed: others count on it. */
static const struct operation_type record_type = {
    .start_locked = record_start_locked, .fini = mark_fini, .always = true};

static bool await_holds(struct operation *operation, bool thoroughly)
{
    const struct mark *mark = (const struct mark *)operation;
    const struct ipc_event *event = &mark->event->slot->event;

    return thoroughly ? is_over(event, mark->number) : is_marked(event, mark->number);
}

static bool await_start_locked(struct operation *operation)
{
    return watch_until_locked(operation, await_holds);
}

static const struct operation_type await_type = {.start_locked = await_start_locked,
                                                 .fini = mark_fini};

static struct mark *mark_create_locked(const struct operation_type *type,
                                       struct shared_event *event, uint64_t number)
{
    struct mark *mark = operation_create(sizeof(*mark), type);

    if (!mark)
        return NULL;
    event->references++;
    mark->event = event;
    mark->number = number;
    return mark;
}

static void enqueue_locked(struct stream *stream, struct mark *mark)
{
    schedule_enqueue_locked(stream, &mark->operation);
    operation_unref_locked(&mark->operation);
}

CUresult shared_event_record_locked(struct shared_event *event, struct stream *stream)
{
    struct mark *mark = mark_create_locked(&record_type, event, 0);
    struct ipc_event *shared = &event->slot->event;

    if (!mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mark->number = __atomic_add_fetch(&shared->recorded, 1, __ATOMIC_ACQ_REL);
    shared->marks[mark->number % IPC_EVENT_MARKS].pid = getpid();
    enqueue_locked(stream, mark);
    return CUDA_SUCCESS;
}

CUresult shared_event_await_locked(struct shared_event *event, struct stream *stream)
{
    uint64_t number = last_record(event);
    struct mark *mark;

    if (number == 0 || is_marked(&event->slot->event, number))
        return CUDA_SUCCESS;
    mark = mark_create_locked(&await_type, event, number);
    if (!mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    enqueue_locked(stream, mark);
    return CUDA_SUCCESS;
}

/* ---- as handles ---- */

CUresult soft_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct event *found;

    SOFT_LOCKED;
    found = soft_get(SOFT_EVENT, event);
    if (!found || !found->shared || found->shared->number < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    ipc_handle_write(pHandle, IPC_EVENT, found->shared->number);
    return CUDA_SUCCESS;
}

CUresult soft_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct shared_event *shared;
    struct context *context;
    struct ipc_handle name;
    struct ipc_slot *slot;
    CUresult result;

    SOFT_LOCKED;
    result = context_use_locked(&context);
    if (!result)
        result = ipc_handle_read(&handle, IPC_EVENT, &name);
    if (result)
        return result;
    slot = ipc_slot_map(&name);
    if (!slot)
        return CUDA_ERROR_INVALID_VALUE;
    result = adopt_slot(slot, -1, &shared);
    if (result) {
        ipc_slot_unmap(slot);
        return result;
    }
    result = event_create_locked(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared,
                                 phEvent);
    if (result)
        shared_event_unref_locked(shared);
    return result;
}
