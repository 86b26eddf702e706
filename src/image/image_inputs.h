/* SPDX-License-Identifier: Apache-2.0 */
/* The linker inputs in a separately compiled program (image_format.h). `code` comes from the
 * program: a wrapper, or another form of code without inputs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool image_has_inputs(const void *code);

/* Whether the code has inputs but no linked container. */
bool image_has_only_inputs(const void *code);

/* Makes a bundle of the linked container and the inputs, which the caller frees. Returns 0 or
 * -ENOMEM. -EINVAL: one is no container, there are none, or they exceed IMAGE_INPUTS_MAX or
 * IMAGE_SIZE_MAX. */
int image_gather_inputs(const void *code, void **ret_bytes, size_t *ret_size);
