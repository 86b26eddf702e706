/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA keeps for each thread. */
#ifndef FUNNEL_CLIENT_THREAD_H
#define FUNNEL_CLIENT_THREAD_H

#include <stdint.h>

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
    CUstream default_stream; /* what stream 0 means: NULL = the legacy one */
    struct thread_stream *streams;
    unsigned stream_count;
};

/* The calling thread's. Only when attached. */
struct thread *thread_self(void);

/* Lets what the thread holds be freed when it ends; to be called before it holds something. */
void thread_keep(void);

#endif
