/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a program is a pointer without a length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The image proper and its size in bytes: the container inside a wrapper, a container, a cubin, an
 * archive, or PTX text with its NUL. False when the code is none of these, or its headers are
 * inconsistent. Each read stays within the size that earlier fields claim. The image belongs to the
 * program.
 */
bool image_find(const void *code, const void **ret_image, size_t *ret_size);
