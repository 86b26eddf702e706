/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, and the objects by which kernels read and write them. */
#ifndef FUNNEL_CLIENT_ARRAY_H
#define FUNNEL_CLIENT_ARRAY_H

#include "client_context.h"
#include "cuda_array.h"

/* An array, an array with mipmaps, or a level of one. */
struct array {
    uint64_t handle;
    struct context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels; /* 0 but for an array with mipmaps */
    uint64_t whole;  /* of a level: the array that it is one of, or 0 */
    unsigned number; /* and which */
    uint64_t level_handles[CUDA_ARRAY_LEVELS_MAX]; /* 0 until asked for; under client->lock */
    struct list link;                              /* context->arrays */
};

/* NULL when there is none; the second is for arrays with mipmaps, which the first does not find. */
struct array *array_lookup(CUarray handle);
struct array *array_lookup_mipmap(CUmipmappedArray handle);

/* What is wrong with it for any device; the driver knows the rest. */
CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);

/* Mints a handle, and has `send` make the array of that handle. */
CUresult array_create(const struct array *like, CUresult (*send)(const struct array *array),
                      uint64_t *ret_handle);

/* The work of its device is done. False when somebody else has destroyed it. */
bool array_destroy(uint64_t handle);

/* ---- texture.c ---- */

struct texture {
    uint64_t handle, object;
    struct context *context;
    bool is_surface;
    CUDA_RESOURCE_DESC resource;
    struct cuda_texture_words words; /* not of a surface */
    bool has_view;
};

/* Has `make` make an object, and keeps what it is. */
CUresult texture_create(const struct texture *like,
                        CUresult (*make)(const struct texture *texture, uint64_t *ret_object),
                        uint64_t *ret_object);
/* Waits for the context's work first: a kernel that still uses it would end everybody's. */
CUresult texture_destroy(uint64_t object, bool is_surface);
/* A copy of what is known of an object: CUDA_ERROR_INVALID_VALUE when there is none. */
CUresult texture_describe(uint64_t object, bool is_surface, struct texture *ret_texture);

/* ---- when a context ends ---- */

void array_destroy_all(struct context *context);
void texture_destroy_all(struct context *context);

#endif
