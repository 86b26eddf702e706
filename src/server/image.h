/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module images. A driver believes the sizes that are written inside an image, so they are compared
 * with the real one first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether `bytes` (with a NUL behind them) are an image whose headers stay within `size`: a fat
 * binary container, or a bundle of them (image_bundle.h), an ELF file or PTX text. */
bool image_is_sound(const void *bytes, size_t size);

/* Whether an image that is sound is PTX text. */
bool image_is_text(const void *image, size_t size);

/* Whether kernels of an image that is sound may print: false only if they surely do not. */
bool image_prints(const void *bytes, size_t size);

/* The same, and whether they may allocate on the device's own heap, in one look. */
void image_calls(const void *bytes, size_t size, bool *ret_prints, bool *ret_allocates);

/* Whether an image that is sound may have variables that outlive a kernel: false only if it surely
 * has none. */
bool image_has_variables(const void *bytes, size_t size);
