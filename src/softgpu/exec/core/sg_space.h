/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address spaces: the memory that kernels of a context may access. Device addresses are host
 * addresses of this process. Every function may be called on any thread, while kernels run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "texture.h"

struct sg_space;

enum sg_access {
    SG_READ = 1,
    SG_WRITE = 2,
};

struct sg_space *sg_space_create(void);
void sg_space_destroy(struct sg_space *space);

/* Both may be called while kernels run. Ranges must not overlap: -EEXIST; -ENOENT when there is
 * none. */
int sg_space_add(struct sg_space *space, uint64_t base, uint64_t size, unsigned access);
int sg_space_remove(struct sg_space *space, uint64_t base);

/* Whether [address, address + size) lies inside ranges without a gap that all allow the access. A
 * texture of linear memory may go beyond its allocation, as on a GPU. */
bool sg_space_allows(struct sg_space *space, uint64_t address, uint64_t size, unsigned access);

/* How much the kernels of each owner may allocate with malloc (cuCtxSetLimit); 8 MiB at first. It
 * is freed with the space, */
void sg_space_set_heap_limit(struct sg_space *space, uint64_t bytes);
/* or when the owner is forgotten: none of its kernels runs any more. */
void sg_space_forget_owner(struct sg_space *space, uint64_t owner);

/* ---- The objects of a space: their numbers are what kernels hold ---- */

/* 0 and a number that is not 0, or -ENOMEM. The texture stays the caller's. */
int sg_space_add_texture(struct sg_space *space, const struct sg_texture *texture,
                         uint64_t *ret_number);
int sg_space_remove_texture(struct sg_space *space, uint64_t number);
