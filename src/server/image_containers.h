/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles of fat binary containers: see image_bundle.h. They are given to the driver as a program
 * that runs without us gives them, by pointers to each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct image_wrapper;

/* How far it is from a sound container to the one behind it, or to the end of the `size` bytes. */
size_t image_container_extent(const void *container, size_t size);

/* Whether an image that is sound is a bundle. */
bool image_is_bundle(const void *image, size_t size);

/* What the driver takes for a sound bundle, and copies: for the caller to free afterwards. False
 * when out of memory. */
bool image_wrap(const void *bundle, size_t size, struct image_wrapper **ret_wrapper);
