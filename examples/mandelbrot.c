/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of the Mandelbrot set. Threads of one warp leave their loops at different times, which
 * makes it the example of divergence. The size is the width in points.
 */
#include "example.h"

#include <stdlib.h>

#include "mandelbrot.ptx.h"

#define LIMIT 200
#define BLOCK_X 16
#define BLOCK_Y 8

static uint16_t steps_on_host(unsigned column, unsigned row, unsigned width, unsigned height)
{
    float re = -2.0f + 3.0f * (float)column / (float)width;
    float im = -1.0f + 2.0f * (float)row / (float)height;
    float x = 0.0f, y = 0.0f;
    uint16_t n = 0;

    while (n < LIMIT && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + re;

        y = 2.0f * x * y + im;
        x = next;
        n++;
    }
    return n;
}

static bool is_mandelbrot(const uint16_t *steps, unsigned width, unsigned height)
{
    for (unsigned row = 0; row < height; row++) {
        for (unsigned column = 0; column < width; column++) {
            if (steps[(size_t)row * width + column] != steps_on_host(column, row, width, height))
                return false;
        }
    }
    return true;
}

static void draw_on_device(struct example *example, unsigned height, uint16_t *ret_steps)
{
    size_t bytes = (size_t)example->size * height * sizeof(*ret_steps);
    CUfunction mandelbrot = example_function(example, "mandelbrot");
    CUdeviceptr steps = example_alloc(bytes);
    unsigned limit = LIMIT;
    void *parameters[] = {&steps, &example->size, &height, &limit};

    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuLaunchKernel(mandelbrot, (example->size + BLOCK_X - 1) / BLOCK_X,
                             (height + BLOCK_Y - 1) / BLOCK_Y, 1, BLOCK_X, BLOCK_Y, 1, 0, NULL,
                             parameters, NULL));
        example_progress(example, round);
    }
    CHECK(cuMemcpyDtoH(ret_steps, steps, bytes));
    CHECK(cuMemFree(steps));
}

int main(int argc, char **argv)
{
    struct example example = {.name = "mandelbrot", .size = 240, .rounds = 1};
    unsigned height;
    uint16_t *steps;
    size_t bytes;
    int status;

    example_open(&example, argc, argv, mandelbrot_ptx);
    height = (example.size + 1) * 2 / 3;
    bytes = (size_t)example.size * height * sizeof(*steps);
    steps = example_buffer(bytes);
    draw_on_device(&example, height, steps);
    status = example_close(&example, is_mandelbrot(steps, example.size, height),
                           example_checksum(steps, bytes));
    free(steps);
    return status;
}
