/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects: an array or linear memory, and how it is read. The object's value is
 * the number that kernels look it up by in their space. The functions need soft_lock.
 */
#pragma once

#include "soft_array.h"

struct texture {
    struct sg_texture unit; /* first: what the space gives back */
    uint64_t number;
    struct array *array; /* NULL for linear memory */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
    bool destroyed; /* the program has no such object any more; work queued before that has */
    struct texture_removal *removal;
    struct context *context;
    struct list in_context;
};

/* Fills in the fields of the resource, for any kind of object; CUDA's errors of cuTexObjectCreate.
 */
CUresult texture_use_resource_locked(const CUDA_RESOURCE_DESC *resource, struct texture *texture);
/* Makes kernels find it. On failure (CUDA_ERROR_OUT_OF_MEMORY) it is still the caller's. */
CUresult texture_enter_locked(struct context *context, struct texture *texture);
/* The object of a description. The view may be NULL. CUDA's errors of cuTexObjectCreate, and of
 * cuSurfObjectCreate. */
CUresult texture_create_locked(struct context *context, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *description,
                               const CUDA_RESOURCE_VIEW_DESC *view, struct texture **ret_texture);
CUresult surface_create_locked(struct context *context, const CUDA_RESOURCE_DESC *resource,
                               struct texture **ret_surface);
/* The current context's object, or NULL. */
struct texture *texture_find_locked(uint64_t number, bool is_surface);
/* For the program it is gone at once; for kernels, when the work queued before this has finished.
 * CUDA_ERROR_INVALID_VALUE when there is none. */
CUresult texture_destroy_locked(uint64_t number, bool is_surface);
/* Ends one that no kernel reads any more. */
void texture_free_locked(struct texture *texture);
/* Ends them all: nothing of the context runs any more. */
void textures_drop_context_locked(struct context *context);
