/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which launches in flight were given a pointer into an allocation. A kernel may use all of an
 * allocation that it has a pointer into. So page faults of the program wait for such launches
 * (managed_fault.c), and for no others.
 */
#pragma once

#include "client_stream.h"

/* Streams whose launches an allocation tells apart. */
#define USE_STREAMS 4u

struct use {
    uint64_t stream;    /* handle; 0 = none */
    struct fence fence; /* the first one behind the launch, which may not have been sent yet */
};

struct managed_uses {
    struct use last[USE_STREAMS]; /* of one stream each */
    bool by_more;                 /* and some on further streams */
};

/* Called once while attaching. */
void use_init(void);

/* Before the first allocation is made; false when there is no memory. With the lock of
 * fault_prepare().
 */
bool use_prepare(void);

/* With the channel lock: a kernel with these parameters is about to be put on a stream. A command
 * of several kernels announces all of them before it notes the first one. */
void use_announce(const struct stream *stream, const void *params, size_t size);
void use_note(const struct stream *stream, const void *params, size_t size);

/* Whether a launch on the stream was given the allocation and is not known to have ended. With the
 * lock of allocations. */
bool use_is_on_locked(const struct managed_uses *uses, const struct stream *stream);

/* Whether there are such launches on any stream but this one (NULL = on any); sends the fences that
 * will tell when they end. With the locks of the channel and of allocations. */
bool use_in_flight_locked(struct managed_uses *uses, const struct stream *but);
