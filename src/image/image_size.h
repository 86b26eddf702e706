/* SPDX-License-Identifier: Apache-2.0 */
/* What a program hands over as code: a pointer without a length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The image proper and its size in bytes: the container inside a wrapper, a container, a cubin, an
 * archive, or PTX text with its NUL. False when the code is none of these, or its own numbers make
 * no sense. Nothing is read that an earlier field has not promised. The image stays the program's.
 */
bool image_find(const void *code, const void **ret_image, size_t *ret_size);
