/* SPDX-License-Identifier: Apache-2.0 */
/* See array_shape.h. */
#include "array_shape.h"

#include "cuda_array.h"
#include "soft_context.h"

static const struct {
    CUarray_format format;
    enum sg_channel kind;
    uint8_t size;
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, SG_CHANNEL_UNSIGNED, 1},
    {CU_AD_FORMAT_SIGNED_INT8, SG_CHANNEL_SIGNED, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, SG_CHANNEL_UNSIGNED, 2},
    {CU_AD_FORMAT_SIGNED_INT16, SG_CHANNEL_SIGNED, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, SG_CHANNEL_UNSIGNED, 4},
    {CU_AD_FORMAT_SIGNED_INT32, SG_CHANNEL_SIGNED, 4},
    {CU_AD_FORMAT_HALF, SG_CHANNEL_FLOAT, 2},
    {CU_AD_FORMAT_FLOAT, SG_CHANNEL_FLOAT, 4},
};

bool array_format(CUarray_format format, unsigned channels, struct sg_format *ret_format)
{
    for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].format != format)
            continue;
        *ret_format = (struct sg_format){formats[i].kind, (uint8_t)channels, formats[i].size};
        return channels == 1 || channels == 2 || channels == 4;
    }
    return false;
}

/* Attributes of the device; 0 where there is no such dimension. */
struct bounds {
    CUdevice_attribute width, height, depth;
};

#define BOUNDS(width, height, depth)                                               \
    (struct bounds)                                                                \
    {                                                                              \
        CU_DEVICE_ATTRIBUTE_MAXIMUM_##width, CU_DEVICE_ATTRIBUTE_MAXIMUM_##height, \
            CU_DEVICE_ATTRIBUTE_MAXIMUM_##depth                                    \
    }
#define CU_DEVICE_ATTRIBUTE_MAXIMUM_NONE 0

static struct bounds texture_bounds(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

    if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
        return layered ? BOUNDS(TEXTURECUBEMAP_LAYERED_WIDTH, TEXTURECUBEMAP_LAYERED_WIDTH,
                                TEXTURECUBEMAP_LAYERED_LAYERS)
                       : BOUNDS(TEXTURECUBEMAP_WIDTH, TEXTURECUBEMAP_WIDTH, NONE);
    if (layered)
        return d->Height ? BOUNDS(TEXTURE2D_LAYERED_WIDTH, TEXTURE2D_LAYERED_HEIGHT,
                                  TEXTURE2D_LAYERED_LAYERS)
                         : BOUNDS(TEXTURE1D_LAYERED_WIDTH, NONE, TEXTURE1D_LAYERED_LAYERS);
    if (d->Depth)
        return BOUNDS(TEXTURE3D_WIDTH, TEXTURE3D_HEIGHT, TEXTURE3D_DEPTH);
    return d->Height ? BOUNDS(TEXTURE2D_WIDTH, TEXTURE2D_HEIGHT, NONE)
                     : BOUNDS(TEXTURE1D_WIDTH, NONE, NONE);
}

static struct bounds surface_bounds(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

    if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
        return layered ? BOUNDS(SURFACECUBEMAP_LAYERED_WIDTH, SURFACECUBEMAP_LAYERED_WIDTH,
                                SURFACECUBEMAP_LAYERED_LAYERS)
                       : BOUNDS(SURFACECUBEMAP_WIDTH, SURFACECUBEMAP_WIDTH, NONE);
    if (layered)
        return d->Height ? BOUNDS(SURFACE2D_LAYERED_WIDTH, SURFACE2D_LAYERED_HEIGHT,
                                  SURFACE2D_LAYERED_LAYERS)
                         : BOUNDS(SURFACE1D_LAYERED_WIDTH, NONE, SURFACE1D_LAYERED_LAYERS);
    if (d->Depth)
        return BOUNDS(SURFACE3D_WIDTH, SURFACE3D_HEIGHT, SURFACE3D_DEPTH);
    return d->Height ? BOUNDS(SURFACE2D_WIDTH, SURFACE2D_HEIGHT, NONE)
                     : BOUNDS(SURFACE1D_WIDTH, NONE, NONE);
}

static bool extent_is_within(const struct device *device, size_t extent, CUdevice_attribute most)
{
    return !most || extent <= (size_t)device_attribute(device, most);
}

static bool shape_fits(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d,
                       struct bounds bounds)
{
    return extent_is_within(device, d->Width, bounds.width) &&
           extent_is_within(device, d->Height, bounds.height) &&
           extent_is_within(device, d->Depth, bounds.depth);
}

/* A box may be deeper where it is less wide and high. */
static bool fits_alternate(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return d->Depth > 0 && !(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) &&
           shape_fits(device, d,
                      BOUNDS(TEXTURE3D_WIDTH_ALTERNATE, TEXTURE3D_HEIGHT_ALTERNATE,
                             TEXTURE3D_DEPTH_ALTERNATE));
}

static bool is_sound(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

    if (d->Width == 0 || (d->Flags & ~(unsigned)CUDA_ARRAY_FLAGS_CARRIED))
        return false;
    if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
        return d->Width == d->Height && d->Depth > 0 &&
               (layered ? d->Depth % 6 == 0 : d->Depth == 6);
    return layered ? d->Depth > 0 : d->Depth == 0 || d->Height > 0;
}

bool array_is_possible(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d,
                       bool has_mipmaps)
{
    bool is_plane = d->Height > 0 && d->Depth == 0;

    if (!is_sound(d) || (!shape_fits(device, d, texture_bounds(d)) && !fits_alternate(device, d)))
        return false;
    if (d->Flags & CUDA_ARRAY3D_SURFACE_LDST && !shape_fits(device, d, surface_bounds(d)))
        return false;
    if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER &&
        (!is_plane ||
         !shape_fits(device, d, BOUNDS(TEXTURE2D_GATHER_WIDTH, TEXTURE2D_GATHER_HEIGHT, NONE))))
        return false;
    if (!has_mipmaps)
        return true;
    return is_plane
               ? shape_fits(device, d,
                            BOUNDS(TEXTURE2D_MIPMAPPED_WIDTH, TEXTURE2D_MIPMAPPED_HEIGHT, NONE))
               : d->Height > 0 ||
                     shape_fits(device, d, BOUNDS(TEXTURE1D_MIPMAPPED_WIDTH, NONE, NONE));
}
