/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples for all lanes of a warp together, where the texture is of the common kind: one level, no
 * cube, elements of 32-bit channels. What comes out is bit for bit what sg_texture_sample gives
 * lane by lane. Each step here is a loop over lanes that the compiler can vectorize.
 */
#include "tex_lanes.h"

#include <math.h>
#include <string.h>

#include "isa.h"
#include "lane_any.h"
#include "lane_math.h"
#include "tex_fetch.h"

#define EACH_LANE _Pragma("GCC ivdep") for (unsigned lane = 0; lane < LANES; lane++)

/* One dimension: tex_axis for each lane. */
struct lane_axis {
    int32_t first[LANES] __attribute__((aligned(64)));
    int32_t second[LANES] __attribute__((aligned(64)));
    float weight[LANES] __attribute__((aligned(64)));
};

static bool can_wrap(const struct sg_texture *texture, unsigned dimensions)
{
    for (unsigned i = 0; i < dimensions; i++) {
        if (texture->normalized && texture->address[i] == SG_MIRROR)
            return false;
    }
    return true;
}

static unsigned dimensions_of(enum sg_shape shape)
{
    if (shape == SG_CUBE || shape == SG_CUBE_LAYERED)
        return 0;
    return shape == SG_3D ? 3 : shape == SG_2D || shape == SG_2D_LAYERED ? 2 : 1;
}

/* In elements, as in_elements() of tex_address.c has it. */
static void coordinates(const struct sg_texture *texture, unsigned dimension, uint32_t size,
                        const float *at, float *ret_x)
{
    float scale = texture->normalized ? (float)size : 1;
    bool repeats = texture->normalized && texture->address[dimension] == SG_WRAP;
    EACH_LANE
    {
        float x = at[lane];
        bool finite = fabsf(x) <= __FLT_MAX__;
        x = finite && repeats ? x - floorf(x) : x;
        x = finite ? x * scale : x;
        x = x != x ? 0 : x;
        x = x < -TEX_FAR ? -TEX_FAR : x;
        ret_x[lane] = x > TEX_FAR ? TEX_FAR : x;
    }
}

/* tex_wrap() for each lane; false where one is more than a whole size outside. */
static bool wrap_index(const struct sg_texture *texture, unsigned dimension, uint32_t size,
                       int32_t *index)
{
    enum sg_address_mode mode = texture->address[dimension];
    int32_t count = (int32_t)size;
    if (mode == SG_BORDER) {
        EACH_LANE
        index[lane] = index[lane] < 0 || index[lane] >= count ? -1 : index[lane];
        return true;
    }
    if (mode != SG_WRAP || !texture->normalized) {
        EACH_LANE
        {
            int32_t at = index[lane] < 0 ? 0 : index[lane];
            index[lane] = at < count ? at : count - 1;
        }
        return true;
    }
    uint32_t outside[LANES] __attribute__((aligned(64)));
    EACH_LANE
    {
        int32_t at = index[lane] < 0 ? index[lane] + count : index[lane];
        at = at < count ? at : at - count;
        outside[lane] = at < 0 || at >= count;
        index[lane] = at;
    }
    return !any_set32(outside);
}

static bool axis_of_lanes(const struct sg_texture *texture, unsigned dimension, uint32_t size,
                          bool is_linear, const float *at, struct lane_axis *ret_axis)
{
    float x[LANES] __attribute__((aligned(64)));
    coordinates(texture, dimension, size, at, x);
    float shift = is_linear ? 0.5f : 0;
    EACH_LANE
    {
        float from = x[lane] - shift, below = floorf(from);
        ret_axis->first[lane] = (int32_t)below;
        ret_axis->second[lane] = (int32_t)below + 1;
        ret_axis->weight[lane] = is_linear ? floorf((from - below) * 256 + 0.5f) / 256 : 0;
    }
    return wrap_index(texture, dimension, size, ret_axis->first) &&
           (!is_linear || wrap_index(texture, dimension, size, ret_axis->second));
}

static void write_texel(const struct tex_texel *texel, unsigned lane, uint32_t ret_bits[4][LANES])
{
    for (unsigned i = 0; i < 4; i++)
        ret_bits[i][lane] = texel->bits[i];
}

/* The elements at these places; a coordinate of -1 is the border. */
static void fetch_texels(const struct sg_texture *texture, const int32_t *x, const int32_t *y,
                         const int32_t *z, uint32_t ret_bits[4][LANES])
{
    const struct sg_level *level = &texture->levels[0];
    unsigned channels = texture->format.channels;
    uint64_t size = sg_texel_size(&texture->format);
    const unsigned char *base = (const unsigned char *)(uintptr_t)level->address;
    for (unsigned i = 0; i < channels; i++) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            bool outside = (x[lane] | y[lane] | z[lane]) < 0;
            uint64_t at = (uint64_t)z[lane] * level->slice + (uint64_t)y[lane] * level->pitch +
                          (uint64_t)x[lane] * size;
            ret_bits[i][lane] = *(const uint32_t *)(base + (outside ? 0 : at) + 4 * i);
        }
    }
    uint32_t one = tex_reads_floats(texture) ? float_bits(1) : 1;
    for (unsigned i = channels; i < 4; i++) {
        EACH_LANE
        ret_bits[i][lane] = i == 3 ? one : 0;
    }
}

static void fetch_border(const struct sg_texture *texture, const int32_t *x, const int32_t *y,
                         const int32_t *z, uint32_t ret_bits[4][LANES])
{
    uint32_t outside[LANES] __attribute__((aligned(64)));
    EACH_LANE
    outside[lane] = (uint32_t)(x[lane] | y[lane] | z[lane]);
    struct tex_texel border = tex_fetch(texture, &texture->levels[0], -1, -1, -1);
    for (uint32_t rest = mask_of_flags(outside); rest; rest &= rest - 1)
        write_texel(&border, (unsigned)__builtin_ctz(rest), ret_bits);
}

/* One corner of up to eight: adds its elements where they count at all. */
static void add_corner(const struct sg_texture *texture, const int32_t *const at[3],
                       const float *weight, float sum[4][LANES])
{
    uint32_t bits[4][LANES] __attribute__((aligned(64)));
    fetch_texels(texture, at[0], at[1], at[2], bits);
    fetch_border(texture, at[0], at[1], at[2], bits);
    for (unsigned i = 0; i < 4; i++) {
        EACH_LANE
        {
            float more = sum[i][lane] + weight[lane] * bits_float(bits[i][lane]);
            sum[i][lane] = weight[lane] == 0 ? sum[i][lane] : more;
        }
    }
}

static void mean_of_lanes(const struct sg_texture *texture, unsigned dimensions,
                          const struct lane_axis axis[3], uint32_t ret_bits[4][LANES])
{
    float sum[4][LANES] __attribute__((aligned(64))) = {{0}};
    for (unsigned corner = 0; corner < 1u << dimensions; corner++) {
        float weight[LANES] __attribute__((aligned(64)));
        const int32_t *at[3];
        EACH_LANE
        weight[lane] = 1;
        for (unsigned i = 0; i < 3; i++) {
            bool second = corner >> i & 1;
            at[i] = second ? axis[i].second : axis[i].first;
            EACH_LANE
            weight[lane] *= second ? axis[i].weight[lane] : 1 - axis[i].weight[lane];
        }
        if (any_set32((const uint32_t *)weight))
            add_corner(texture, at, weight, sum);
    }
    memcpy(ret_bits, sum, sizeof(sum));
}

bool ISA_NAME(tex_sample_lanes)(const struct sg_texture *texture, enum sg_shape shape,
                                const uint32_t *layer, const float *const at[3],
                                uint32_t ret_bits[4][LANES])
{
    const struct sg_level *level = &texture->levels[0];
    const uint32_t size[3] = {level->width, level->height, level->depth};
    bool is_linear = texture->filter_linear && tex_reads_floats(texture);
    unsigned dimensions = dimensions_of(shape);
    struct lane_axis axis[3];
    if (dimensions == 0 || texture->level_count != 1 || texture->format.size != 4 ||
        !can_wrap(texture, dimensions))
        return false;
    memset(axis, 0, sizeof(axis));
    for (unsigned i = 0; i < dimensions; i++) {
        if (!axis_of_lanes(texture, i, size[i], is_linear, at[i], &axis[i]))
            return false;
    }
    for (unsigned lane = 0; layer && lane < LANES; lane++)
        axis[2].first[lane] =
            (int32_t)(layer[lane] < texture->layers ? layer[lane] : texture->layers - 1);
    if (is_linear) {
        mean_of_lanes(texture, dimensions, axis, ret_bits);
        return true;
    }
    fetch_texels(texture, axis[0].first, axis[1].first, axis[2].first, ret_bits);
    fetch_border(texture, axis[0].first, axis[1].first, axis[2].first, ret_bits);
    return true;
}
