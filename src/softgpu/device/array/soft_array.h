/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: memory that textures and surfaces read, in rows here as anywhere, but without an address
 * that a program could see. One with mipmaps has several levels; each of them is an array as well,
 * once the program asks for it. Functions named _locked need soft_lock.
 */
#pragma once

#include "soft.h"
#include "soft_box.h"
#include "texture.h"

struct context;
struct device;

struct array {
    uint64_t handle;     /* 0: destroyed, and kept by objects and levels */
    unsigned references; /* the handle's, and those of objects and levels */
    struct context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct sg_format format;
    struct sg_level levels[SG_MAX_LEVELS]; /* their depth is 1 where there are layers */
    uint32_t level_count, layers;
    struct array *level_arrays[SG_MAX_LEVELS];
    struct array *parent; /* of a level: whose memory this is */
    void *pages;
    uint64_t size;
    struct list in_context;
};

/* ---- array_shape.c ---- */

/* How elements of a format are stored: false for formats that are not carried. */
bool array_format(CUarray_format format, unsigned channels, struct sg_format *ret_format);
/* Whether the device can have such an array, with or without mipmaps. */
bool array_is_possible(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                       bool has_mipmaps);
/* ---- array_calls.c ---- */

/* NULL when the handle is of none. */
struct array *array_get_locked(CUarray handle);
struct array *array_get_mipmap_locked(CUmipmappedArray handle);
/* In the current context, zeroed, with one reference. CUDA_ERROR_INVALID_VALUE for what the device
 * cannot have, CUDA_ERROR_OUT_OF_MEMORY, or that there is no context. */
CUresult array_create_locked(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, enum soft_handle_type type,
                             unsigned levels, struct array **ret_array);
/* Finds a part of an array for a copy: CUDA_ERROR_INVALID_VALUE when it is not all inside, or
 * begins or ends within an element. */
CUresult array_side_locked(CUarray handle, const uint64_t at[3], const struct box *box,
                           struct box_side *ret_side);
/* The handle names nothing from now on. */
void array_retire_locked(struct array *array);
/* Before an array is destroyed: waits for the work of the current context, which may be about to
 * read it. Releases soft_lock meanwhile. */
CUresult array_await_locked(void);
/* Nothing that is queued may need it any more when this is the last reference. */
void array_unref_locked(struct array *array);
void arrays_drop_context_locked(struct context *context);
