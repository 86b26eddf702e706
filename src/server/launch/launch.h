/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain launches: those without attributes, which nearly all are.
 */
#pragma once

#include <string.h>

#include "graph_batch.h"
#include "server.h"
#include "server_dispatch.h"
#include "session.h"
#include "stream.h"

/* As a command gives it, and the bytes of parameters that come with it. */
static inline void launch_shape_read(struct launch_shape *shape, const uint32_t words[7],
                                     uint32_t params_size)
{
    memcpy(shape, words, sizeof(*shape) - sizeof(shape->params_size));
    shape->params_size = params_size;
}

/* What the command asks for. It points into the command. */
static inline void launch_read(struct launch *launch, const struct wire_cuLaunchKernelEx *in,
                               struct function *function)
{
    launch->function = function;
    launch_shape_read(&launch->shape, in->shape, in->params_size);
    launch->params = in->params;
    launch->urgent = false;
}

/* How launches are made: what the FUNNEL_NO_* variables switch off. */
struct launch_options {
    bool no_batching;      /* FUNNEL_NO_LAUNCH_BATCHING */
    bool no_fence_kernel;  /* FUNNEL_NO_FENCE_KERNEL */
    bool no_fence_counter; /* FUNNEL_NO_FENCE_TALLY */
};

/* The launch subsystem's part of the server, whose devices, streams and modules are there, and of a
 * session. 0 or -ENOMEM. */
int server_launch_init(struct server *server, const struct launch_options *options);
void server_launch_fini(struct server *server);
int session_launch_init(struct session *session);
void session_launch_fini(struct session *session);

/* As many bytes of parameters as the function takes? */
bool launch_check_params(struct session *session, const char *call, uint32_t size,
                         const struct function *function);

/* Of an array of launch attributes, those that may reach the driver: there is room for
 * LAUNCH_ATTRIBUTES_MAX. */
#define LAUNCH_ATTRIBUTES_MAX 64u
CUresult launch_filter_attributes(struct session *session, const char *call, const void *bytes,
                                  uint32_t size, CUlaunchAttribute *ret_attributes,
                                  unsigned *ret_count);

/* Launches it by itself, with attributes or without. */
CUresult launch_with(const struct launch *launch, const struct stream *stream,
                     CUlaunchAttribute *attributes, unsigned count);
CUresult launch_plain(const struct launch *launch, const struct stream *stream);
