/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles of fat binary containers (image_format.h), for a reader that has checked them with
 * image_is_sound(). They are given to the driver as a program that runs without Funnel gives them,
 * by pointers to each container. The functions hold no state and take no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "image_format.h"

/* The distance in bytes from a sound container to the next one, or to the end of the `size` bytes.
 */
size_t image_container_extent(const void *container, size_t size);

/* Whether an image that is sound is a bundle. */
bool image_is_bundle(const void *image, size_t size);

/* Makes the wrapper of a sound bundle for the driver, which copies it; the caller frees it. Its
 * pointers lead into the bundle. False when out of memory. */
bool image_wrap(const void *bundle, size_t size, struct image_wrapper **ret_wrapper);
