/* SPDX-License-Identifier: Apache-2.0 */
/* See tex_fetch.h. */
#include "tex_fetch.h"

#include <math.h>
#include <string.h>

#include "lane_math.h"
bool tex_reads_floats(const struct sg_texture *texture)
{
    return texture->format.kind == SG_CHANNEL_FLOAT || texture->as_float;
}

static uint32_t load_channel(const struct sg_format *format, uint64_t address)
{
    bool is_signed = format->kind == SG_CHANNEL_SIGNED;
    uint32_t bits = 0;

    memcpy(&bits, (const void *)(uintptr_t)address, format->size);
    if (is_signed && format->size == 1)
        return (uint32_t)(int8_t)bits;
    return is_signed && format->size == 2 ? (uint32_t)(int16_t)bits : bits;
}

/* From -1 to 1; the lowest value is one too many. */
static float signed_fraction(int32_t value, uint8_t size)
{
    float fraction = (float)value / (size == 1 ? 127.0f : 32767.0f);

    return fraction < -1 ? -1 : fraction;
}

static float srgb_to_linear(float value)
{
    return value <= 0.04045f ? value / 12.92f : powf((value + 0.055f) / 1.055f, 2.4f);
}

static uint32_t convert(const struct sg_texture *texture, uint32_t bits, unsigned channel)
{
    const struct sg_format *format = &texture->format;

    if (format->kind == SG_CHANNEL_FLOAT)
        return format->size == 2 ? float_bits(from_half((uint16_t)bits)) : bits;
    if (!texture->as_float)
        return bits;
    if (format->kind == SG_CHANNEL_SIGNED)
        return float_bits(signed_fraction((int32_t)bits, format->size));
    float fraction = (float)bits / (format->size == 1 ? 255.0f : 65535.0f);
    return float_bits(texture->srgb && channel < 3 ? srgb_to_linear(fraction) : fraction);
}

static struct tex_texel border(const struct sg_texture *texture)
{
    struct tex_texel texel;

    for (unsigned i = 0; i < 4; i++) {
        float value = texture->border[i];
        texel.bits[i] = tex_reads_floats(texture) ? float_bits(value) : (uint32_t)(int64_t)value;
    }
    return texel;
}

struct tex_texel tex_fetch(const struct sg_texture *texture, const struct sg_level *level,
                           int32_t x, int32_t y, int32_t z)
{
    const struct sg_format *format = &texture->format;
    struct tex_texel texel = {
        .bits = {0, 0, 0, tex_reads_floats(texture) ? float_bits(1) : 1},
    };

    if (x < 0 || y < 0 || z < 0)
        return border(texture);
    uint64_t address = level->address + (uint64_t)z * level->slice + (uint64_t)y * level->pitch +
                       (uint64_t)x * sg_texel_size(format);
    for (unsigned i = 0; i < format->channels; i++)
        texel.bits[i] =
            convert(texture, load_channel(format, address + (uint64_t)i * format->size), i);
    return texel;
}
