/* SPDX-License-Identifier: Apache-2.0 */
/* See tex_address.h. */
#include "tex_address.h"

#include <math.h>

int32_t tex_wrap(int64_t index, uint32_t size, enum sg_address_mode mode)
{
    int64_t count = size;

    if (index >= 0 && index < count)
        return (int32_t)index;
    switch (mode) {
    case SG_WRAP:
        index %= count;
        return (int32_t)(index < 0 ? index + count : index);
    case SG_MIRROR:
        index %= 2 * count;
        index = index < 0 ? index + 2 * count : index;
        return (int32_t)(index < count ? index : 2 * count - 1 - index);
    case SG_CLAMP:
        return index < 0 ? 0 : (int32_t)(count - 1);
    default:
        return -1;
    }
}

/* In elements. What repeats is brought near first, where a float has bits left for fractions. */
static float in_elements(float at, uint32_t size, bool normalized, enum sg_address_mode mode)
{
    if (isnan(at))
        return 0;
    if (normalized && isfinite(at)) {
        if (mode == SG_WRAP)
            at -= floorf(at);
        else if (mode == SG_MIRROR)
            at -= 2 * floorf(at / 2);
        at *= (float)size;
    }
    return at < -TEX_FAR ? -TEX_FAR : at > TEX_FAR ? TEX_FAR : at;
}

/* The hardware repeats only what is normalized. */
static enum sg_address_mode mode_for(bool normalized, enum sg_address_mode mode)
{
    return normalized || mode == SG_BORDER ? mode : SG_CLAMP;
}

int32_t tex_nearest(float at, uint32_t size, bool normalized, enum sg_address_mode mode)
{
    float x = in_elements(at, size, normalized, mode);

    return tex_wrap((int64_t)floorf(x), size, mode_for(normalized, mode));
}

float tex_weight(float fraction)
{
    return floorf(fraction * 256 + 0.5f) / 256;
}

struct tex_axis tex_between(float at, uint32_t size, bool normalized, enum sg_address_mode mode)
{
    float x = in_elements(at, size, normalized, mode) - 0.5f;
    int64_t first = (int64_t)floorf(x);

    mode = mode_for(normalized, mode);
    return (struct tex_axis){
        .first = tex_wrap(first, size, mode),
        .second = tex_wrap(first + 1, size, mode),
        .weight = tex_weight(x - floorf(x)),
    };
}
