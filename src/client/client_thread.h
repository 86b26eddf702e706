/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA keeps for each thread. */
#ifndef FUNNEL_CLIENT_THREAD_H
#define FUNNEL_CLIENT_THREAD_H

#include <stdint.h>

#include "client.h"
#include "context_stack.h"

/* The stream that CU_STREAM_PER_THREAD means in one context. */
struct thread_stream {
    const struct context *context;
    uint64_t epoch; /* of the context: a reset ends its streams */
    CUstream stream;
};

struct thread {
    uint32_t generation; /* the client that the rest belongs to */
    struct context_stack stack;
    CUstream default_stream; /* what stream 0 means: NULL = the legacy one */
    struct thread_stream *streams;
    unsigned stream_count;
};

/* In the initial block of thread-local storage, which costs no call to reach. It is a few words. */
extern __thread __attribute__((tls_model("initial-exec"))) struct thread thread_storage;

/* What is there is of the parent of a fork: it is forgotten. */
void thread_begin_anew(void);

/* The calling thread's. Only when attached. */
static inline struct thread *thread_self(void)
{
    if (__builtin_expect(thread_storage.generation != client->generation, 0))
        thread_begin_anew();
    return &thread_storage;
}

/* Lets what the thread holds be freed when it ends; to be called before it holds something. */
void thread_keep(void);

#endif
