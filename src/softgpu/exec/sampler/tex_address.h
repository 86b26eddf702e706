/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From coordinates to elements, as the appendix on texture fetching of CUDA's guide has it.
 */
#pragma once

#include "tex.h"

/* The element of a coordinate for a point filter. */
int32_t tex_nearest(float at, uint32_t size, bool normalized, enum sg_address_mode mode);
/* The two elements around it for a linear filter. */
struct tex_axis tex_between(float at, uint32_t size, bool normalized, enum sg_address_mode mode);
/* An element's number brought into bounds, or -1. */
int32_t tex_wrap(int64_t index, uint32_t size, enum sg_address_mode mode);
/* 8 bits of fraction, rounded: 1 is possible. */
float tex_weight(float fraction);
