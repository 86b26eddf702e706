/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples: the layer, the level, and the mean of the elements around a point.
 */
#include <math.h>
#include <string.h>

#include "tex.h"
#include "tex_address.h"
#include "tex_cube.h"
#include "tex_fetch.h"

static unsigned dimensions(enum sg_shape shape)
{
    switch (shape) {
    case SG_1D:
    case SG_1D_LAYERED:
        return 1;
    case SG_3D:
        return 3;
    default:
        return 2;
    }
}

/* The coordinates in the plane of a layer: a cube's direction has become a face. */
struct place {
    unsigned dimensions;
    bool is_cube;
    uint32_t layer;
    float at[3];
};

static uint32_t clamp_layer(const struct sg_texture *texture, uint32_t layer)
{
    return layer < texture->layers ? layer : texture->layers - 1;
}

static struct place place_of(const struct sg_texture *texture, const struct sg_sample *sample)
{
    struct place place = {.dimensions = dimensions(sample->shape), .layer = sample->layer};

    memcpy(place.at, sample->at, sizeof(place.at));
    if (sample->shape == SG_CUBE || sample->shape == SG_CUBE_LAYERED) {
        uint32_t cube = sample->shape == SG_CUBE ? 0 : sample->layer;
        uint32_t cubes = texture->layers / 6;
        unsigned face = tex_face(sample->at, place.at);
        cube = cubes == 0 ? 0 : cube < cubes ? cube : cubes - 1;
        place.layer = 6 * cube + face;
        place.is_cube = true;
    }
    if (sample->shape == SG_1D || sample->shape == SG_2D || sample->shape == SG_3D)
        place.layer = 0;
    place.layer = clamp_layer(texture, place.layer);
    return place;
}

static uint32_t level_size(const struct sg_level *level, unsigned dimension)
{
    return dimension == 0 ? level->width : dimension == 1 ? level->height : level->depth;
}

/* A dimension that the instruction does not name is at its first element. */
static struct tex_axis axis_of(const struct sg_texture *texture, const struct sg_level *level,
                               const struct place *place, unsigned dimension)
{
    enum sg_address_mode mode = texture->address[dimension];

    if (dimension >= place->dimensions)
        return (struct tex_axis){0, 0, 0};
    if (texture->filter_linear && tex_reads_floats(texture))
        return tex_between(place->at[dimension], level_size(level, dimension), texture->normalized,
                           mode);
    int32_t nearest =
        tex_nearest(place->at[dimension], level_size(level, dimension), texture->normalized, mode);
    return (struct tex_axis){nearest, nearest, 0};
}

static int32_t slice_of(const struct place *place, int32_t z)
{
    return place->dimensions == 3 ? z : (int32_t)place->layer;
}

/* Up to eight elements, each with the product of its weights. */
static struct tex_texel mean(const struct sg_texture *texture, const struct sg_level *level,
                             const struct place *place, const struct tex_axis axis[3])
{
    struct tex_texel sum = {.f = {0}};

    for (unsigned corner = 0; corner < 1u << place->dimensions; corner++) {
        int32_t at[3];
        float weight = 1;
        for (unsigned i = 0; i < 3; i++) {
            bool second = corner >> i & 1;
            at[i] = second ? axis[i].second : axis[i].first;
            weight *= second ? axis[i].weight : 1 - axis[i].weight;
        }
        if (weight == 0)
            continue;
        struct tex_texel texel = tex_fetch(texture, level, at[0], at[1], slice_of(place, at[2]));
        for (unsigned i = 0; i < 4; i++)
            sum.f[i] += weight * texel.f[i];
    }
    return sum;
}

static struct tex_texel sample_level(const struct sg_texture *texture, const struct place *place,
                                     uint32_t index)
{
    const struct sg_level *level = &texture->levels[index];
    struct tex_axis axis[3];

    if (place->is_cube && texture->seamless && texture->filter_linear && tex_reads_floats(texture))
        return tex_cube_mean(texture, level, place->layer, place->at);
    for (unsigned i = 0; i < 3; i++)
        axis[i] = axis_of(texture, level, place, i);
    if (texture->filter_linear && tex_reads_floats(texture))
        return mean(texture, level, place, axis);
    return tex_fetch(texture, level, axis[0].first, axis[1].first, slice_of(place, axis[2].first));
}

static float clamp_level(const struct sg_texture *texture, float lod)
{
    float most = (float)(texture->level_count - 1);

    lod += texture->bias;
    lod = lod > texture->greatest_level ? texture->greatest_level : lod;
    lod = lod < texture->least_level ? texture->least_level : lod;
    return lod > most ? most : lod > 0 ? lod : 0;
}

void sg_texture_sample(const struct sg_texture *texture, const struct sg_sample *sample,
                       uint32_t ret_bits[4])
{
    struct place place = place_of(texture, sample);
    float lod = clamp_level(texture, sample->lod);
    bool blend = texture->mip_linear && tex_reads_floats(texture);
    uint32_t level = (uint32_t)(blend ? lod : lod + 0.5f);
    float weight = blend ? tex_weight(lod - floorf(lod)) : 0;
    struct tex_texel texel = sample_level(texture, &place, level);

    if (weight > 0 && level + 1 < texture->level_count) {
        struct tex_texel next = sample_level(texture, &place, level + 1);
        for (unsigned i = 0; i < 4; i++)
            texel.f[i] = (1 - weight) * texel.f[i] + weight * next.f[i];
    }
    memcpy(ret_bits, texel.bits, sizeof(texel.bits));
}

void sg_texture_fetch(const struct sg_texture *texture, const struct sg_sample *sample,
                      const int32_t at[3], uint32_t ret_bits[4])
{
    struct place place = place_of(texture, sample);
    uint32_t index = (uint32_t)clamp_level(texture, sample->lod);
    const struct sg_level *level = &texture->levels[index];
    int32_t inside[3] = {0};

    memset(ret_bits, 0, 4 * sizeof(*ret_bits));
    if (texture->is_linear && (at[0] < 0 || (uint32_t)at[0] >= level->width))
        return;
    for (unsigned i = 0; i < place.dimensions; i++) {
        bool has_border = texture->address[i] == SG_BORDER;
        inside[i] = tex_wrap(at[i], level_size(level, i), has_border ? SG_BORDER : SG_CLAMP);
    }
    struct tex_texel texel =
        tex_fetch(texture, level, inside[0], inside[1], slice_of(&place, inside[2]));
    memcpy(ret_bits, texel.bits, sizeof(texel.bits));
}

void sg_texture_gather(const struct sg_texture *texture, const struct sg_sample *sample,
                       unsigned channel, uint32_t ret_bits[4])
{
    struct place place = place_of(texture, sample);
    const struct sg_level *level = &texture->levels[0];
    struct tex_axis x =
        tex_between(place.at[0], level->width, texture->normalized, texture->address[0]);
    struct tex_axis y =
        tex_between(place.at[1], level->height, texture->normalized, texture->address[1]);
    const int32_t around[4][2] = {
        {x.first, y.second}, {x.second, y.second}, {x.second, y.first}, {x.first, y.first}};

    for (unsigned i = 0; i < 4; i++)
        ret_bits[i] = tex_fetch(texture, level, around[i][0], around[i][1], (int32_t)place.layer)
                          .bits[channel];
}

float sg_texture_lod(const struct sg_texture *texture, enum sg_shape shape, const float dx[3],
                     const float dy[3])
{
    const struct sg_level *level = &texture->levels[0];
    bool is_cube = shape == SG_CUBE || shape == SG_CUBE_LAYERED;
    unsigned count = is_cube ? 3 : dimensions(shape);
    float across = 0, down = 0;

    /* A face is two wide where a direction's components go from -1 to 1. */
    for (unsigned i = 0; i < count; i++) {
        float size = is_cube ? (float)level->width / 2 : (float)level_size(level, i);
        across += dx[i] * size * dx[i] * size;
        down += dy[i] * size * dy[i] * size;
    }
    float larger = across > down ? across : down;
    return larger > 0 ? log2f(larger) / 2 : -1000;
}
