/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays: memory that textures read, in rows here as anywhere, but without an address that a
 * program could see.
 */
#pragma once

#include "soft.h"
#include "soft_copy.h"
#include "texture.h"

struct context;
struct cuda_box_side;

struct array {
    uint64_t handle;     /* 0: destroyed, and kept by textures */
    unsigned references; /* the handle's and those of textures */
    struct context *context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct sg_format format;
    struct sg_level level; /* its depth is 1 where there are layers */
    uint32_t layers;
    void *pages;
    uint64_t size;
    struct list in_context;
};

/* How elements of a format are stored: false for formats that are not carried. */
bool array_format(CUarray_format format, unsigned channels, struct sg_format *ret_format);
struct array *array_get_locked(CUarray handle);
/* Where a part of an array is, for a copy: CUDA_ERROR_INVALID_VALUE when it is not all inside. */
CUresult array_side_locked(CUarray handle, const uint64_t at[3], const struct box *box,
                           struct box_side *ret_side);
/* Waits for the context's work before the last reference's memory goes. */
void array_unref_locked(struct array *array);
void arrays_drop_context_locked(struct context *context);

/* ---- texture_calls.c ---- */
void textures_drop_context_locked(struct context *context);
