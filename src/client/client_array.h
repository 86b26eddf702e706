/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, and the objects by which kernels read them. */
#ifndef FUNNEL_CLIENT_ARRAY_H
#define FUNNEL_CLIENT_ARRAY_H

#include "client_context.h"

struct array {
    uint64_t handle;
    struct context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct list link; /* context->arrays */
};

/* NULL when there is none. */
struct array *array_lookup(CUarray handle);

void array_destroy_all(struct context *context);
void texture_destroy_all(struct context *context);

#endif
