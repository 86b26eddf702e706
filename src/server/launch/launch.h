/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by themselves, and what they have in common with those of graphs. Functions are the
 * session thread's; stream_begin_brief() has been called where a stream is given.
 */
#pragma once

#include <string.h>

#include "graph_batch.h"
#include "server.h"
#include "server_dispatch.h"
#include "session.h"
#include "stream.h"

/* The shape in a command, and the size of the parameters that come with it. */
static inline void launch_shape_read(struct launch_shape *shape, const uint32_t words[7],
                                     uint32_t params_size)
{
    memcpy(shape, words, sizeof(*shape) - sizeof(shape->params_size));
    shape->params_size = params_size;
}

/* The launch that a command describes. It points into the command. */
static inline void launch_read(struct launch *launch, const struct wire_cuLaunchKernelEx *in,
                               struct function *function)
{
    launch->function = function;
    launch_shape_read(&launch->shape, in->shape, in->params_size);
    launch->params = in->params;
    launch->urgent = false;
}

/* What FUNNEL_OFF switches off. */
struct launch_options {
    bool no_batching;      /* FUNNEL_OFF=launch-batching */
    bool no_fence_kernel;  /* FUNNEL_OFF=fence-kernel */
    bool no_fence_counter; /* FUNNEL_OFF=fence-counter */
    bool no_context_hold;  /* FUNNEL_OFF=context-hold */
};

/* The launch subsystem's part of the server, whose devices, streams and modules are initialized,
 * and of a session. 0 or -ENOMEM. */
int server_launch_init(struct server *server, const struct launch_options *options);
void server_launch_fini(struct server *server);
int session_launch_init(struct session *session);
void session_launch_fini(struct session *session);

/* Whether there are as many bytes of parameters as the function takes. False comes with an error in
 * the log. */
bool launch_check_params(struct session *session, const char *call, uint32_t size,
                         const struct function *function);

/* Copies the launch attributes that may reach the driver. Adds the attributes that the client has
 * set on the function and the launch does not name. `ret_attributes` has space for
 * LAUNCH_ATTRIBUTES_MAX. CUDA_ERROR_INVALID_VALUE for a malformed array, CUDA_ERROR_NOT_SUPPORTED
 * for an attribute that the server cannot pass, both with an error in the log. */
#define LAUNCH_ATTRIBUTES_OFFERED_MAX 64u
#define LAUNCH_ATTRIBUTES_MAX (LAUNCH_ATTRIBUTES_OFFERED_MAX + FUNCTION_LAUNCH_ATTRIBUTES)
CUresult launch_filter_attributes(struct session *session, const char *call,
                                  const struct function *function, const void *bytes, uint32_t size,
                                  CUlaunchAttribute *ret_attributes, unsigned *ret_count);

/* Launches it by itself, with attributes or without. What the driver says. */
CUresult launch_with(const struct launch *launch, const struct stream *stream,
                     CUlaunchAttribute *attributes, unsigned count);
CUresult launch_plain(const struct launch *launch, const struct stream *stream);

/* Before launches of kernels with `uses` (function.h) together: lets the stream begin its work, and
 * says what the kernels use. What the driver says. */
CUresult launch_begin(struct session *session, struct stream *stream, const struct launch *launches,
                      unsigned count, uint32_t uses);
