/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain launches: those without attributes, which nearly all are.
 */
#pragma once

#include <string.h>

#include "chain.h"
#include "server_dispatch.h"

/* As a command gives it, and the bytes of parameters that come with it. */
static inline struct launch_shape launch_shape_of(const uint32_t words[7], uint32_t params_size)
{
    struct launch_shape shape = {.params_size = params_size};

    memcpy(&shape, words, sizeof(shape) - sizeof(shape.params_size));
    return shape;
}

/* What the command asks for. It points into the command. */
static inline struct launch launch_of(const struct wire_cuLaunchKernelEx *in,
                                      struct function *function)
{
    return (struct launch){
        .function = function,
        .shape = launch_shape_of(in->shape, in->params_size),
        .params = in->params,
    };
}

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
