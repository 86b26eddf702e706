/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local state. It is freed when the thread ends, and forgotten in a child of fork, where it
 * still describes the parent.
 */
#include "client_thread.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "client_call.h"
#include "client_entry.h"

__thread __attribute__((tls_model("initial-exec"))) struct thread thread_storage;
void (*thread_exit_hook)(const struct thread *thread);
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static void clear_thread(struct thread *thread)
{
    context_stack_clear(&thread->stack);
    free(thread->streams);
    memset(thread, 0, sizeof(*thread));
}

/* Runs while the thread ends: no other thread can use its default streams from now on. */
static void thread_leave(void *argument)
{
    struct thread *thread = argument;

    if (client_mode() == CLIENT_FUNNEL && thread->generation == client->generation) {
        call_begin();
        thread_exit_hook(thread);
        call_end();
    }
    clear_thread(thread);
    call_place_give();
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_leave) == 0;
}

void thread_keep(void)
{
    pthread_once(&key_once, make_key);
    if (key_made)
        pthread_setspecific(key, &thread_storage);
}

void thread_begin_anew(void)
{
    CUstream default_stream = thread_storage.default_stream;

    clear_thread(&thread_storage);
    thread_storage.generation = client->generation;
    thread_storage.default_stream = default_stream;
}

CUstream client_default_stream_swap(CUstream stream)
{
    CUstream before = thread_storage.default_stream;

    thread_storage.default_stream = stream;
    return before;
}
