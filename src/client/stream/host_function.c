/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions. The stream writes a fence and then waits for its host-wait word. A thread of the
 * library sees the fence, runs the function, and ends the wait. The thread is made by the first
 * use. It runs one function at a time, in the order in which the fences of different streams pass.
 */
#include "host_function.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "managed_hooks.h"
#include "recovery_hook.h"
#include "spin.h"
#include "stream_commands.h"
#include "wire_calls.h"

/* A thread waits until a job is done. */
struct completion {
    bool done;
};

struct job {
    struct fence fence;
    uint32_t host_wait_word, host_wait_seq;
    CUhostFn function;
    CUstreamCallback callback; /* one of the two is set */
    CUstream stream;
    void *user;
    bool holds; /* a stream waits for its host-wait word */
    struct completion *completion;
    struct list link;
};

static struct runner {
    pthread_mutex_t lock;
    pthread_cond_t wake, ended;
    struct list jobs; /* in the order of the calls, so the jobs of one stream are in order */
    bool started;
} runner;

void host_function_init(void)
{
    memset(&runner, 0, sizeof(runner));
    pthread_mutex_init(&runner.lock, NULL);
    pthread_cond_init(&runner.wake, NULL);
    pthread_cond_init(&runner.ended, NULL);
    list_init(&runner.jobs);
}

/* Once the context is lost no fence passes any more: callbacks get the error, functions are
 * skipped, as in CUDA. */
static struct job *next_job(CUresult error)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&runner.lock);

    while (list_empty(&runner.jobs))
        pthread_cond_wait(&runner.wake, &runner.lock);
    list_for_each (struct job, job, &runner.jobs, link) {
        if (fence_passed(job->fence) || error != CUDA_SUCCESS) {
            list_remove(&job->link);
            return job;
        }
    }
    return NULL;
}

static void end_host_wait(const struct job *job)
{
    if (!job->holds)
        return;
    atomic_store_explicit(&client->host_wait_words[job->host_wait_word], job->host_wait_seq,
                          memory_order_release);
}

static void call(const struct job *job, CUresult error)
{
    if (job->callback)
        job->callback(job->stream, error, job->user);
    else if (error == CUDA_SUCCESS || !job->holds)
        job->function(job->user);
}

/* Partner: await_completion(). */
static void end_completion(struct completion *completion)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&runner.lock);

    completion->done = true;
    pthread_cond_broadcast(&runner.ended);
}

static void run_job(struct job *job, CUresult error)
{
    call(job, error);
    end_host_wait(job);
    if (job->completion)
        end_completion(job->completion);
    free(job);
}

/* The error that remains when the client could not be moved to another server. */
static CUresult lasting_error(void)
{
    CUresult error;

    call_begin_for_function();
    error = recovery_error();
    call_end();
    return error;
}

static void *run_jobs(void *unused)
{
    struct timespec pause = {0, 20000};
    struct spin spin = spin_begin();

    for (unsigned idle = 0;; idle++) {
        CUresult error = lasting_error();
        struct job *job = next_job(error);

        if (job) {
            run_job(job, error);
            spin = spin_begin();
        } else if (!spin_more(&spin)) {
            nanosleep(&pause, NULL);
            if (idle % 1024 == 0)
                channel_alive(&client->channel);
        }
    }
    return NULL;
}

/* Signals are for the program's threads, so ours blocks all that others send. */
static bool start_thread_locked(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;

    if (runner.started)
        return true;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* write_guard.h */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    runner.started = pthread_create(&thread, &attributes, run_jobs, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return runner.started;
}

static void enqueue(struct job *job)
{
    pthread_mutex_lock(&runner.lock);
    list_append(&runner.jobs, &job->link);
    pthread_cond_signal(&runner.wake);
    pthread_mutex_unlock(&runner.lock);
}

static CUresult send_job(struct job *job, struct stream *stream)
{
    struct wire_cuLaunchHostFunc in = {.hStream = stream->handle, .host_wait_word = stream->word};
    CUresult result;

    in.seq = stream_begin_fenced(stream);
    stream->unfenced = true;
    in.host_wait_seq = ++stream->host_wait_seq;
    job->holds = true;
    job->fence = stream_fence_at(stream, in.seq);
    job->host_wait_word = in.host_wait_word;
    job->host_wait_seq = in.host_wait_seq;
    enqueue(job);
    result = wire_cuLaunchHostFunc(&client->channel, &in);
    stream_end();
    return result;
}

/* NULL when there is no memory, or no thread. */
static struct job *create_job(const struct job *what)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&runner.lock);
    struct job *job = start_thread_locked() ? malloc(sizeof(*job)) : NULL;

    if (job)
        *job = *what;
    return job;
}

static void await_completion(const struct completion *completion)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&runner.lock);

    while (!completion->done)
        pthread_cond_wait(&runner.ended, &runner.lock);
}

/* A function may use managed variables, and only the caller can bring them up to date. A stream
 * that waits for the host must need no call to go on (the server's gate.h says why). So the caller
 * waits for the stream, and for the function. */
static CUresult run_at_once(struct stream *stream, struct job what)
{
    struct completion completion = {.done = false};
    struct job *job;
    CUresult result = stream_fence(stream, &what.fence);

    if (result == CUDA_SUCCESS)
        result = fence_wait(what.fence, stream->handle, FENCE_SPIN);
    if (result != CUDA_SUCCESS)
        return result;
    managed_pull();
    what.completion = &completion;
    job = create_job(&what);
    if (!job)
        return CUDA_ERROR_OUT_OF_MEMORY;
    enqueue(job);
    call_park(); /* the function may take long */
    await_completion(&completion);
    call_unpark_when_open();
    return CUDA_SUCCESS;
}

static CUresult queue(struct stream *stream, struct job what)
{
    struct job *job;

    if (managed_any())
        return run_at_once(stream, what);
    job = create_job(&what);
    return job ? send_job(job, stream) : CUDA_ERROR_OUT_OF_MEMORY;
}

void host_function_when(struct fence fence, CUhostFn function, void *user)
{
    const struct job what = {.fence = fence, .function = function, .user = user};
    struct job *job = create_job(&what);

    if (!job) {
        function(user);
        return;
    }
    enqueue(job);
}

CUresult host_function_queue(struct stream *stream, CUhostFn function, void *user)
{
    return queue(stream, (struct job){.function = function, .user = user});
}

CUresult client_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS || capture_takes_host(stream, fn, userData, &result))
        return result;
    return host_function_queue(stream, fn, userData);
}

/* A callback gets errors, which a node of a graph does not, so it is not captured. */
CUresult client_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                    unsigned flags)
{
    struct stream *stream;
    CUresult result = stream_enter(hStream, &stream);

    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = capture_check_stream(stream);
    if (result != CUDA_SUCCESS)
        return result;
    return queue(stream, (struct job){.callback = callback, .stream = hStream, .user = userData});
}
