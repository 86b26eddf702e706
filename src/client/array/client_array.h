/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, mipmapped arrays and their levels. */
#pragma once

#include "client_context.h"
#include "cuda_array.h"

/* An array, an array with mipmaps, or a level of one. */
struct array {
    uint64_t handle;
    struct context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels; /* 0 unless it is an array with mipmaps */
    uint64_t whole;  /* of a level: the array that it is one of, or 0 */
    unsigned number; /* and which */
    uint64_t level_handles[CUDA_ARRAY_LEVELS_MAX]; /* 0 until asked for; under client->lock */
    struct list link;                              /* context->arrays */
};

/* NULL when there is none. The second is for arrays with mipmaps, which the first does not find. */
struct array *array_lookup(CUarray handle);
struct array *array_lookup_mipmap(CUmipmappedArray handle);

/* Checks a description against the limits of all devices: CUDA_ERROR_INVALID_VALUE or
 * CUDA_ERROR_NOT_SUPPORTED. The server's driver checks the rest. */
CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Copies `like`, mints a handle, and has `send` make the array of that handle with the server.
 * CUDA_ERROR_OUT_OF_MEMORY, or the result of `send`. */
CUresult array_create(const struct array *like, CUresult (*send)(const struct array *array),
                      uint64_t *ret_handle);

/* The work of its device is done. False when another thread has destroyed it. */
bool array_destroy(uint64_t handle);

/* Destroys the arrays of a context, whose work has completed. */
void array_destroy_all(struct context *context);
