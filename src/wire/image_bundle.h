/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How separately compiled code travels (nvcc -rdc=true). Such a program has what was linked when it
 * was built, and the inputs of the linker, each a fat binary container, for drivers that have no
 * use for the former and link by themselves. The inputs go as one image, a bundle: an empty
 * container, and behind it the others, each on an offset that is a multiple of 8.
 */
#ifndef FUNNEL_IMAGE_BUNDLE_H
#define FUNNEL_IMAGE_BUNDLE_H

#include <stdint.h>

#define IMAGE_WRAPPER_MAGIC 0x466243b1u
#define IMAGE_CONTAINER_MAGIC 0xba55ed50u

/* Of one program. */
#define IMAGE_INPUTS_MAX 4096u

#define IMAGE_BUNDLE_ALIGN 8u

/* What a program registers. In version 2 `inputs` are containers, up to a NULL. */
struct image_wrapper {
    uint32_t magic, version;
    const void *linked;
    const void *const *inputs;
};

/* Entries of `size` bytes follow the header. */
struct image_container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
};

#endif
