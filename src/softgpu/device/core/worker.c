/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads for what takes time and is no kernel: copies, fills and host functions. They are
 * made when work finds none idle, so a program that needs none has none.
 */
#include <signal.h>

#include "schedule.h"
#include "soft.h"
#include "soft_context.h"

/* Host functions may block for long, so there are more than a machine of two cores would ask for.
 */
#define MAX_WORKERS 16

static pthread_cond_t work_available = PTHREAD_COND_INITIALIZER;
static struct operation *first_work;
static struct operation **last_work = &first_work;
static unsigned workers, idle, waiting_work;

static struct operation *take_work_locked(void)
{
    struct operation *operation;

    idle++;
    while (!first_work)
        pthread_cond_wait(&work_available, &soft_lock);
    idle--;
    operation = first_work;
    first_work = operation->next_ready;
    if (!first_work)
        last_work = &first_work;
    waiting_work--;
    return operation;
}

static void *worker_main(void *unused)
{
    for (;;) {
        struct operation *operation;

        pthread_mutex_lock(&soft_lock);
        operation = take_work_locked();
        pthread_mutex_unlock(&soft_lock);
        operation->type->work(operation);
        operation_finish(operation);
    }
    return unused;
}

/* Signals are for the program's threads. But an access to memory of a truncated file raises SIGBUS
 * in the accessing thread, and the process may have a handler for that. */
bool soft_thread_start(void *(*function)(void *), void *argument)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(thread);
    return !error;
}

void worker_submit_locked(struct operation *operation)
{
    operation->next_ready = NULL;
    *last_work = operation;
    last_work = &operation->next_ready;
    waiting_work++;

    if (waiting_work > idle && workers < MAX_WORKERS && soft_thread_start(worker_main, NULL))
        workers++;
    if (!workers)
        soft_log("no worker thread could be started: the stream waits for one");
    pthread_cond_signal(&work_available);
}
