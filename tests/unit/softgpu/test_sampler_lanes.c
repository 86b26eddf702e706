/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a whole warp are bit for bit those that its lanes get one by one.
 */
#include "machine.h"

#include <math.h>
#include <string.h>

#include "tex_lanes.h"
#include "texture.h"

#define WIDTH 7
#define HEIGHT 5
#define DEPTH 3
#define CHANNELS 4

static float texels[DEPTH][HEIGHT][WIDTH][CHANNELS];

static uint32_t state = 1;

static uint32_t random_number(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static void fill_texels(void)
{
    float *texel = &texels[0][0][0][0];
    for (size_t i = 0; i < sizeof(texels) / sizeof(*texel); i++)
        texel[i] = (float)random_number(1 << 20) / 1024 - 300;
}

static struct sg_texture random_texture(void)
{
    static const uint8_t channels[] = {1, 2, 4};
    uint8_t count = channels[random_number(3)];
    struct sg_texture texture = {
        .format = {(enum sg_channel)random_number(3), count, 4},
        .level_count = 1,
        .layers = DEPTH,
        .normalized = random_number(2),
        .filter_linear = random_number(2),
        .border = {-3, 5, 0.5f, 7},
        .levels = {{(uintptr_t)texels, WIDTH * count * 4u, WIDTH * HEIGHT * count * 4u, WIDTH,
                    HEIGHT, DEPTH}},
    };
    for (unsigned i = 0; i < 3; i++)
        texture.address[i] = (uint8_t)random_number(4);
    return texture;
}

static float random_coordinate(bool normalized)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e30f, -0.0f, -1e-30f};
    if (random_number(400) == 0)
        return odd[random_number(6)];
    float at = (float)random_number(1 << 16) / 4096 - 5;
    if (random_number(4) == 0)
        at = floorf(at) + 0.5f;
    return normalized ? at / 4 : at;
}

/* How many warps were served as a whole. */
static unsigned compare(const struct sg_texture *texture, enum sg_shape shape)
{
    float at[3][LANES] __attribute__((aligned(64)));
    uint32_t layer[LANES], bits[4][LANES] __attribute__((aligned(64)));
    bool layered = shape == SG_1D_LAYERED || shape == SG_2D_LAYERED;
    for (unsigned lane = 0; lane < LANES; lane++) {
        layer[lane] = random_number(DEPTH + 1);
        for (unsigned i = 0; i < 3; i++)
            at[i][lane] = random_coordinate(texture->normalized);
    }
    const float *const where[3] = {at[0], at[1], at[2]};
    if (!tex_sample_lanes()(texture, shape, layered ? layer : NULL, where, bits))
        return 0;
    for (unsigned lane = 0; lane < LANES; lane++) {
        struct sg_sample sample = {
            .shape = shape, .layer = layer[lane], .at = {at[0][lane], at[1][lane], at[2][lane]}};
        uint32_t alone[4];
        sg_texture_sample(texture, &sample, alone);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(bits[i][lane], alone[i]);
    }
    return 1;
}

static void lanes_and_warps_agree(void **unused)
{
    static const enum sg_shape shapes[] = {SG_1D, SG_2D, SG_3D, SG_1D_LAYERED, SG_2D_LAYERED};
    unsigned served = 0;
    fill_texels();
    for (unsigned i = 0; i < 20000; i++) {
        struct sg_texture texture = random_texture();
        served += compare(&texture, shapes[random_number(5)]);
    }
    assert_in_range(served, 5000, 19999);
}

/* What is not of the common kind is left to the lanes. */
static void other_kinds_are_left_alone(void **unused)
{
    struct sg_texture texture = random_texture();
    assert_int_equal(compare(&texture, SG_CUBE), 0);
    texture.format.size = 1;
    assert_int_equal(compare(&texture, SG_2D), 0);
    texture.format.size = 4;
    texture.level_count = 2;
    assert_int_equal(compare(&texture, SG_2D), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_and_warps_agree),
        cmocka_unit_test(other_kinds_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
