/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk_task.h. */
#include "chunk_task.h"

#include "device.h"

#define THREADS 4u

static CUresult work(struct chunk_task *task)
{
    CUresult result = device_enter(task->order.regions->device);

    if (result == CUDA_SUCCESS)
        result = chunk_team_work(&task->order, &task->error);
    if (result != CUDA_SUCCESS || !task->ending)
        return result;
    task->error = task->ending(task->context);
    return task->error ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

static void *run_task(void *context)
{
    struct chunk_task *task = context;

    task->result = work(task);
    /* Partner: chunk_task_is_done(). */
    atomic_store_explicit(&task->is_done, true, memory_order_release);
    return NULL;
}

int chunk_task_begin(struct chunk_task *task, const struct chunk_order *order)
{
    task->order = *order;
    task->order.watch = &task->watch;
    task->order.threads = THREADS;
    pthread_mutex_init(&task->watch.lock, NULL);
    int error = pthread_create(&task->thread, NULL, run_task, task);
    if (error)
        pthread_mutex_destroy(&task->watch.lock);
    return -error;
}

bool chunk_task_is_done(const struct chunk_task *task)
{
    /* Partner: run_task(). */
    return atomic_load_explicit(&task->is_done, memory_order_acquire);
}

void chunk_task_finish(struct chunk_task *task)
{
    pthread_join(task->thread, NULL);
    pthread_mutex_destroy(&task->watch.lock);
}

void chunk_task_cancel(struct chunk_task *task)
{
    task->watch.cancelled = true;
    chunk_task_finish(task);
}
