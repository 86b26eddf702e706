/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module images that come from another process. A driver believes the sizes that are written inside
 * an image, so they are compared with the real one first. The functions hold no state and take no
 * lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `bytes` (with a NUL behind them) are an image whose headers stay within `size`. It may be
 * a fat binary container, a bundle of them (image_bundle.h), an ELF file or PTX text. */
bool image_is_sound(const void *bytes, size_t size);

/* Whether an image that is sound is PTX text. */
bool image_is_ptx(const void *image, size_t size);
