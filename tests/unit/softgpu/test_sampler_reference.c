/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texture unit against a reference of its own, in double arithmetic and by another way. A
 * function of integers repeats the texture, and a filter is the sum over all elements of the
 * neighborhood.
 */
#include "machine.h"

#include <math.h>
#include <string.h>

#include "texture.h"

#define WIDTH 7
#define HEIGHT 5

static float pixels[HEIGHT][WIDTH];

static struct sg_texture plane(void)
{
    struct sg_texture texture = {
        .format = {SG_CHANNEL_FLOAT, 1, 4},
        .level_count = 1,
        .layers = 1,
        .levels = {{(uintptr_t)pixels, sizeof(pixels[0]), sizeof(pixels), WIDTH, HEIGHT, 1}},
        .address = {SG_CLAMP, SG_CLAMP, SG_CLAMP},
        .border = {-3, 0, 0, 0},
    };

    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++)
            pixels[y][x] = (float)((y * 37 + x * 11) % 23);
    }
    return texture;
}

static float sample(const struct sg_texture *texture, float x, float y)
{
    struct sg_sample where = {.shape = SG_2D, .at = {x, y}};
    uint32_t bits[4];
    float value;

    sg_texture_sample(texture, &where, bits);
    memcpy(&value, &bits[0], sizeof(value));
    return value;
}

/* One step at a time, so that it is evidently right. */
static int repeat(int i, int size, enum sg_address_mode mode)
{
    while (mode == SG_WRAP && i < 0)
        i += size;
    while (mode == SG_WRAP && i >= size)
        i -= size;
    while (mode == SG_MIRROR && (i < 0 || i >= size))
        i = i < 0 ? -i - 1 : 2 * size - i - 1;
    if (mode == SG_CLAMP)
        i = i < 0 ? 0 : i >= size ? size - 1 : i;
    return i < 0 || i >= size ? -1 : i;
}

static double element(int x, int y, enum sg_address_mode mode)
{
    x = repeat(x, WIDTH, mode);
    y = repeat(y, HEIGHT, mode);
    return x < 0 || y < 0 ? -3 : pixels[y][x];
}

/* A tent over each element; exact where the fraction is a multiple of 1/256. */
static double filtered(double x, double y, enum sg_address_mode mode)
{
    double sum = 0;

    for (int j = (int)floor(y) - 2; j <= (int)floor(y) + 2; j++) {
        for (int i = (int)floor(x) - 2; i <= (int)floor(x) + 2; i++) {
            double wx = 1 - fabs(x - (i + 0.5)), wy = 1 - fabs(y - (j + 0.5));
            if (wx > 0 && wy > 0)
                sum += wx * wy * element(i, j, mode);
        }
    }
    return sum;
}

static void points_and_means_of_every_address_mode(void **state)
{
    struct sg_texture texture = plane();

    (void)state;
    for (int mode = SG_WRAP; mode <= SG_BORDER; mode++) {
        bool repeats = mode == SG_WRAP || mode == SG_MIRROR;
        memset(texture.address, mode, sizeof(texture.address));
        texture.normalized = repeats;
        for (int step = -3 * 256; step < 3 * 256; step += 5) {
            double x = WIDTH * 0.5 + step * WIDTH / 512.0, y = HEIGHT * 0.5 - step / 128.0;
            float u = (float)(repeats ? x / WIDTH : x), v = (float)(repeats ? y / HEIGHT : y);
            texture.filter_linear = true;
            assert_float_equal(sample(&texture, u, v), filtered(x, y, mode), 23.5 / 128);
            if (fabs(x - rint(x)) < 1e-3 || fabs(y - rint(y)) < 1e-3)
                continue;
            texture.filter_linear = false;
            assert_float_equal(sample(&texture, u, v), element((int)floor(x), (int)floor(y), mode),
                               0);
        }
    }
}

static void fractions_have_eight_bits(void **state)
{
    struct sg_texture texture = plane();

    (void)state;
    texture.filter_linear = true;
    for (int i = 0; i <= 256; i++)
        assert_float_equal(sample(&texture, 1.5f + i / 256.0f, 2.5f),
                           filtered(1.5 + i / 256.0, 2.5, SG_CLAMP), 1e-4);
    assert_float_equal(sample(&texture, 1.5f + 0.49f / 256, 2.5f), pixels[2][1], 0);
    assert_float_equal(sample(&texture, NAN, INFINITY), pixels[HEIGHT - 1][0], 0);
}

static float read_one(enum sg_channel kind, uint8_t size, uint32_t bits, bool srgb)
{
    struct sg_texture texture = plane();

    texture.format = (struct sg_format){kind, 1, size};
    texture.as_float = kind != SG_CHANNEL_FLOAT;
    texture.srgb = srgb;
    texture.levels[0] = (struct sg_level){(uintptr_t)&bits, 4, 4, 1, 1, 1};
    return sample(&texture, 0, 0);
}

static void integers_become_fractions(void **state)
{
    (void)state;
    assert_float_equal(read_one(SG_CHANNEL_UNSIGNED, 1, 255, false), 1, 0);
    assert_float_equal(read_one(SG_CHANNEL_UNSIGNED, 1, 51, false), 0.2, 1e-7);
    assert_float_equal(read_one(SG_CHANNEL_UNSIGNED, 2, 65535, false), 1, 0);
    assert_float_equal(read_one(SG_CHANNEL_SIGNED, 1, 0x80, false), -1, 0);
    assert_float_equal(read_one(SG_CHANNEL_SIGNED, 1, 0x81, false), -1, 0);
    assert_float_equal(read_one(SG_CHANNEL_SIGNED, 2, 0x7fff, false), 1, 0);
    assert_float_equal(read_one(SG_CHANNEL_FLOAT, 2, 0x3e00, false), 1.5, 0);
    assert_float_equal(read_one(SG_CHANNEL_UNSIGNED, 1, 128, true), 0.2158605, 1e-5);
}

static const char *const kernel =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry look(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .f32 %f<12>; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [out];\n"
    "mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f40200000;\n"
    "add.f32 %f1, %f1, 0f3f000000;\n"
    "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];\n"
    "tld4.r.2d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [%rd1, {%f2, %f2}];\n"
    "mul.wide.u32 %rd3, %r1, 8; add.s64 %rd4, %rd2, %rd3;\n"
    "st.global.f32 [%rd4], %f3; st.global.f32 [%rd4+4], %f10; ret;\n}\n";

static void kernels_read_objects_by_number(void **state)
{
    struct machine *machine = machine_create_from(kernel);
    struct sg_texture texture = plane();
    float *out = machine_memory(machine, 2 * WIDTH * sizeof(*out));
    uint64_t number;
    void *params[] = {&number, &out};

    (void)state;
    assert_int_equal(sg_space_add_texture(machine->space, &texture, &number), 0);
    assert_int_equal(machine_launch(machine, "look", 1, WIDTH, 0, params), CUDA_SUCCESS);
    for (int x = 0; x < WIDTH; x++) {
        assert_float_equal(out[2 * x], pixels[2][x], 0);
        assert_float_equal(out[2 * x + 1], pixels[2][2], 0);
    }
    assert_int_equal(sg_space_remove_texture(machine->space, number), 0);
    assert_int_equal(machine_launch(machine, "look", 1, WIDTH, 0, params),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    machine_destroy(machine);
}

static const char *const fetching_kernel =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 t, .param .u64 out, .param .u32 from)\n{\n"
    ".reg .f32 %f<5>; .reg .b32 %r<4>; .reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [from];\n"
    "mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2;\n"
    "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r3}];\n"
    "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd2, %rd3; st.global.f32 [%rd4], %f1; ret;\n}\n";

/* Where linear memory is said to be longer than it is, what is not there faults. What is not said
 * to be there is zero, as ever. */
static void elements_beyond_the_memory_fault(void **state)
{
    struct machine *machine = machine_create_from(fetching_kernel);
    struct sg_texture texture = plane();
    float *out = machine_memory(machine, 4 * sizeof(*out));
    uint64_t number;
    uint32_t from = WIDTH - 4;
    void *params[] = {&number, &out, &from};

    (void)state;
    texture.is_linear = true;
    texture.beyond = 10;
    texture.levels[0].height = 1;
    assert_int_equal(sg_space_add_texture(machine->space, &texture, &number), 0);
    assert_int_equal(machine_launch(machine, "fetch", 1, 4, 0, params), CUDA_SUCCESS);
    for (int i = 0; i < 4; i++)
        assert_float_equal(out[i], pixels[0][WIDTH - 4 + i], 0);
    from = WIDTH + 10;
    assert_int_equal(machine_launch(machine, "fetch", 1, 4, 0, params), CUDA_SUCCESS);
    assert_float_equal(out[0], 0, 0);
    from = WIDTH + 6;
    assert_int_equal(machine_launch(machine, "fetch", 1, 4, 0, params), CUDA_ERROR_ILLEGAL_ADDRESS);
    machine_destroy(machine);
}

/* Each lane adds one to its element, x bytes from the left. */
static const char *const surface_kernel =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry store(.param .u64 s, .param .u32 from, .param .u32 y)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [from]; ld.param.u32 %r2, [y];\n"
    "mov.u32 %r3, %tid.x; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1;\n"
    "suld.b.2d.b32.trap {%r4}, [%rd1, {%r3, %r2}]; add.u32 %r4, %r4, 1;\n"
    "sust.b.2d.b32.trap [%rd1, {%r3, %r2}], {%r4}; ret;\n}\n"
    ".visible .entry add(.param .u64 s, .param .u32 from, .param .u32 y)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [from]; ld.param.u32 %r2, [y];\n"
    "mov.u32 %r3, %tid.x; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1;\n"
    "sured.b.add.2d.u32.zero [%rd1, {%r3, %r2}], 5; ret;\n}\n";

static CUresult access_surface(struct machine *machine, const char *name, uint64_t number, int from,
                               int y)
{
    void *params[] = {&number, &from, &y};

    return machine_launch(machine, name, 1, 4, 0, params);
}

static void surfaces_trap_outside(void **state)
{
    static const struct {
        int from, y;
        CUresult result;
    } cases[] = {
        {4, 1, CUDA_SUCCESS},
        {4 * (WIDTH - 3), 1, CUDA_ERROR_LAUNCH_FAILED},
        {-4, 1, CUDA_ERROR_LAUNCH_FAILED},
        {0, HEIGHT, CUDA_ERROR_LAUNCH_FAILED},
        {0, -1, CUDA_ERROR_LAUNCH_FAILED},
        {2, 1, CUDA_ERROR_MISALIGNED_ADDRESS},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct machine *machine = machine_create_from(surface_kernel);
        struct sg_texture surface = plane();
        uint64_t number;

        surface.is_surface = true;
        assert_int_equal(sg_space_add_texture(machine->space, &surface, &number), 0);
        assert_int_equal(access_surface(machine, "store", number, cases[i].from, cases[i].y),
                         cases[i].result);
        machine_destroy(machine);
    }
}

static void surfaces_are_written(void **state)
{
    struct machine *machine = machine_create_from(surface_kernel);
    struct sg_texture surface = plane();
    uint32_t *bits = (uint32_t *)pixels;
    uint64_t number;

    (void)state;
    surface.is_surface = true;
    memset(pixels, 0, sizeof(pixels));
    assert_int_equal(sg_space_add_texture(machine->space, &surface, &number), 0);
    assert_int_equal(access_surface(machine, "store", number, 8, 3), CUDA_SUCCESS);
    assert_int_equal(access_surface(machine, "add", number, 4 * (WIDTH - 2), 3), CUDA_SUCCESS);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        int x = i % WIDTH, y = i / WIDTH;
        uint32_t wanted = (y == 3 && x >= 2 && x < 6) + (y == 3 && x >= WIDTH - 2 ? 5 : 0);
        assert_int_equal(bits[i], wanted);
    }
    machine_destroy(machine);
}

/* A texture's number is no surface's. */
static void kinds_are_told_apart(void **state)
{
    struct machine *machine = machine_create_from(surface_kernel);
    struct sg_texture texture = plane();
    uint64_t number;

    (void)state;
    assert_int_equal(sg_space_add_texture(machine->space, &texture, &number), 0);
    assert_int_equal(access_surface(machine, "store", number, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_and_means_of_every_address_mode),
        cmocka_unit_test(fractions_have_eight_bits),
        cmocka_unit_test(integers_become_fractions),
        cmocka_unit_test(kernels_read_objects_by_number),
        cmocka_unit_test(elements_beyond_the_memory_fault),
        cmocka_unit_test(surfaces_trap_outside),
        cmocka_unit_test(surfaces_are_written),
        cmocka_unit_test(kinds_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
