/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the linker that a separately compiled program carries (image_format.h). `code` is
 * what the program hands over: a wrapper, or any other form of code, which has no inputs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool image_has_inputs(const void *code);

/* Whether the code has inputs, and nothing was linked from them. */
bool image_has_only_inputs(const void *code);

/* Makes a bundle of what was linked and the inputs, for the caller to free: 0; -ENOMEM; -EINVAL
 * when one is not a container, or there are none, or more than IMAGE_INPUTS_MAX, or IMAGE_SIZE_MAX
 * in all. */
int image_gather_inputs(const void *code, void **ret_bytes, size_t *ret_size);
