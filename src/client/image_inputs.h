/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of separately compiled code: see image_bundle.h. */
#ifndef FUNNEL_IMAGE_INPUTS_H
#define FUNNEL_IMAGE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether what a program hands over as code has inputs. */
bool image_has_inputs(const void *code);

/* The same, and nothing was linked from them. */
bool image_has_only_inputs(const void *code);

/* A bundle of the inputs, for the caller to free. -EINVAL when one is no container, or they are
 * none, or too many. */
int image_gather_inputs(const void *code, void **ret_bytes, size_t *ret_size);

#endif
