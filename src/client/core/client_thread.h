/* SPDX-License-Identifier: Apache-2.0 */
/* The state that CUDA keeps for each thread. */
#pragma once

#include <stdint.h>

#include "client.h"
#include "context_stack.h"

struct context;

/* The stream that CU_STREAM_PER_THREAD means in one context. */
struct thread_stream {
    const struct context *context;
    uint64_t epoch; /* of the context: a reset ends its streams */
    CUstream stream;
};

struct thread {
    uint32_t generation; /* the client that the rest belongs to */
    struct context_stack stack;
    CUstream default_stream; /* the meaning of stream 0: NULL = the legacy stream */
    struct thread_stream *streams;
    unsigned stream_count;
};

/* In the initial block of thread-local storage, which costs no call to reach. It is a few words. */
extern __thread __attribute__((tls_model("initial-exec"))) struct thread thread_storage;

/* Ends the streams of a thread that ends while it is attached, inside a call. Set while attaching.
 */
extern void (*thread_exit_hook)(const struct thread *thread);

/* Clears the state that the thread inherited from the parent of a fork. */
void thread_begin_anew(void);

/* The calling thread's. Only when attached. */
static inline struct thread *thread_self(void)
{
    if (__builtin_expect(thread_storage.generation != client->generation, 0))
        thread_begin_anew();
    return &thread_storage;
}

/* Has the thread's state freed when the thread ends; called before the state holds memory. */
void thread_keep(void);
