/* SPDX-License-Identifier: Apache-2.0 */
/* What a program hands over as code: a pointer without a length. */
#ifndef FUNNEL_IMAGE_SIZE_H
#define FUNNEL_IMAGE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nobody's code is larger. */
#define IMAGE_SIZE_MAX (UINT64_C(4) << 30)

/* The image proper and its size in bytes: the container inside a wrapper, a cubin, or PTX text with
 * its NUL. False when it is none of these, or its own numbers make no sense. */
bool image_find(const void *code, const void **ret_image, size_t *ret_size);

/* Of one fat binary container; false as above. */
bool image_container_size(const void *image, size_t *ret_size);

#endif
