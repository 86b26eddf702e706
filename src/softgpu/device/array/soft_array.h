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

/* NULL when the handle is of none. */
struct array *array_get_locked(CUarray handle);
struct array *array_get_mipmap_locked(CUmipmappedArray handle);
