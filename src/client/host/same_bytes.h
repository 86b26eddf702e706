/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing images: the helper threads of large copies take part for large images. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `size` bytes are equal. */
bool same_bytes(const void *a, const void *b, size_t size);
