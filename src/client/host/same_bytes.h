/* SPDX-License-Identifier: Apache-2.0 */
/* memcmp() for images: what is large is shared with the helpers for large copies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool same_bytes(const void *a, const void *b, size_t size);
