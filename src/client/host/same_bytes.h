/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing images: the helpers for large copies take part in what is large. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `size` bytes are equal. */
bool same_bytes(const void *a, const void *b, size_t size);
