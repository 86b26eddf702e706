/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects, by which kernels read and write arrays and memory. */
#pragma once

#include "client_context.h"
#include "cuda_array.h"

struct texture {
    uint64_t handle, object;
    struct context *context;
    bool is_surface;
    CUDA_RESOURCE_DESC resource;
    struct cuda_texture_words words; /* not of a surface */
    bool has_view;
};

/* Copies `like`, and has `make` make the object with the server, which returns the driver's number.
 * CUDA_ERROR_OUT_OF_MEMORY, or the result of `make`. */
CUresult texture_create(const struct texture *like,
                        CUresult (*make)(const struct texture *texture, uint64_t *ret_object),
                        uint64_t *ret_object);
/* Waits for the context's work first: a kernel that still uses the object would end the context of
 * all clients. CUDA_ERROR_INVALID_VALUE when there is no such object. */
CUresult texture_destroy(uint64_t object, bool is_surface);
/* A copy of the description of an object: CUDA_ERROR_INVALID_VALUE when there is none. */
CUresult texture_describe(uint64_t object, bool is_surface, struct texture *ret_texture);

/* Destroys the objects of a context, whose work has completed. */
void texture_destroy_all(struct context *context);

/* Called once while attaching. */
void texture_init(void);
