/* SPDX-License-Identifier: Apache-2.0 */
/* See tex_cube.h. */
#include "tex_cube.h"

#include <math.h>

#include "tex_address.h"
#include "tex_fetch.h"

unsigned tex_face(const float direction[3], float ret_at[2])
{
    float x = direction[0], y = direction[1], z = direction[2];
    float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
    float major, s, t;
    unsigned face;

    if (az >= ax && az >= ay) {
        face = z < 0 ? 5 : 4;
        major = az, s = z < 0 ? -x : x, t = -y;
    } else if (ay >= ax) {
        face = y < 0 ? 3 : 2;
        major = ay, s = x, t = y < 0 ? -z : z;
    } else {
        face = x < 0 ? 1 : 0;
        major = ax, s = x < 0 ? z : -z, t = -y;
    }
    ret_at[0] = (s / major + 1) / 2;
    ret_at[1] = (t / major + 1) / 2;
    return face;
}

/* Where the middle of an element lies, of a face that goes from -1 to 1. */
static float middle(int32_t index, uint32_t size)
{
    return (2 * (float)index + 1) / (float)size - 1;
}

static void direction_of(unsigned face, float s, float t, float ret_direction[3])
{
    const float directions[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                    {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};

    for (unsigned i = 0; i < 3; i++)
        ret_direction[i] = directions[face][i];
}

/* At most one of x and y is outside, and by one. */
static struct tex_texel fetch_across(const struct sg_texture *texture, const struct sg_level *level,
                                     uint32_t layer, int32_t x, int32_t y)
{
    float direction[3], at[2];

    direction_of(layer % 6, middle(x, level->width), middle(y, level->height), direction);
    layer = layer - layer % 6 + tex_face(direction, at);
    return tex_fetch(texture, level, tex_nearest(at[0], level->width, true, SG_CLAMP),
                     tex_nearest(at[1], level->height, true, SG_CLAMP), (int32_t)layer);
}

static struct tex_texel mean_of_corner(const struct sg_texture *texture,
                                       const struct sg_level *level, uint32_t layer, int32_t x,
                                       int32_t y)
{
    int32_t in_x = tex_wrap(x, level->width, SG_CLAMP), in_y = tex_wrap(y, level->height, SG_CLAMP);
    const struct tex_texel around[3] = {fetch_across(texture, level, layer, in_x, in_y),
                                        fetch_across(texture, level, layer, x, in_y),
                                        fetch_across(texture, level, layer, in_x, y)};
    struct tex_texel sum = {.f = {0}};

    for (unsigned i = 0; i < 4; i++)
        sum.f[i] = (around[0].f[i] + around[1].f[i] + around[2].f[i]) / 3;
    return sum;
}

static struct tex_texel fetch_texel(const struct sg_texture *texture, const struct sg_level *level,
                                    uint32_t layer, int32_t x, int32_t y)
{
    bool x_outside = x < 0 || x >= (int32_t)level->width;
    bool y_outside = y < 0 || y >= (int32_t)level->height;

    if (x_outside && y_outside)
        return mean_of_corner(texture, level, layer, x, y);
    return fetch_across(texture, level, layer, x, y);
}

struct tex_texel tex_cube_mean(const struct sg_texture *texture, const struct sg_level *level,
                               uint32_t layer, const float at[2])
{
    struct tex_texel sum = {.f = {0}};
    float weight[2];
    int32_t first[2];

    for (unsigned i = 0; i < 2; i++) {
        float x = (at[i] >= 0 && at[i] <= 1 ? at[i] : 0) * (float)level->width - 0.5f;
        first[i] = (int32_t)floorf(x);
        weight[i] = tex_weight(x - floorf(x));
    }
    for (int corner = 0; corner < 4; corner++) {
        int dx = corner & 1, dy = corner >> 1;
        float part = (dx ? weight[0] : 1 - weight[0]) * (dy ? weight[1] : 1 - weight[1]);
        struct tex_texel texel = fetch_texel(texture, level, layer, first[0] + dx, first[1] + dy);
        for (unsigned i = 0; i < 4; i++)
            sum.f[i] += part * texel.f[i];
    }
    return sum;
}
