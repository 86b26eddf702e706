/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of arrays: formats, flags, and bounds of the device.
 */
#pragma once

#include "soft_array.h"

/* How elements of a format are stored: false for formats that are not carried. */
bool array_format(CUarray_format format, unsigned channels, struct sg_format *ret_format);
/* Whether the device can have such an array, with or without mipmaps. */
bool array_is_possible(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                       bool has_mipmaps);
/* ---- array_calls.c ---- */
