/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code of an image may do. All take an image that is sound (image_check.h), and answer
 * with true where they cannot know. They hold no state and take no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether kernels may call printf. */
bool image_prints(const void *bytes, size_t size);

/* Whether kernels may call printf, and whether they may allocate on the device's own heap. */
void image_calls(const void *bytes, size_t size, bool *ret_prints, bool *ret_allocates);

/* Whether the image may have variables that outlive a kernel. */
bool image_has_variables(const void *bytes, size_t size);
