/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product of two square matrices, computed tile by tile in shared memory. Some of its rows are
 * computed on the host as well.
 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

#include "matmul.ptx.h"

#define TILE 16
#define ROWS_CHECKED 16

static float *random_matrix(unsigned n, uint32_t seed)
{
    float *matrix = example_buffer((size_t)n * n * sizeof(float));

    for (size_t i = 0; i < (size_t)n * n; i++)
        matrix[i] = example_random_float(&seed);
    return matrix;
}

static bool row_is_right(const float *a, const float *b, const float *product, unsigned n,
                         unsigned row)
{
    for (unsigned column = 0; column < n; column++) {
        float sum = 0.0f;

        for (unsigned k = 0; k < n; k++)
            sum += a[(size_t)row * n + k] * b[(size_t)k * n + column];
        if (product[(size_t)row * n + column] != sum)
            return false;
    }
    return true;
}

static bool is_product(const float *a, const float *b, const float *product, unsigned n)
{
    for (unsigned row = 0; row < n; row += n / ROWS_CHECKED) {
        if (!row_is_right(a, b, product, n, row))
            return false;
    }
    return true;
}

static void multiply_on_device(struct example *example, const float *a, const float *b,
                               float *product)
{
    size_t bytes = (size_t)example->size * example->size * sizeof(float);
    unsigned tiles = example->size / TILE;
    CUfunction matmul = example_function(example, "matmul");
    CUdeviceptr device_a = example_upload(a, bytes);
    CUdeviceptr device_b = example_upload(b, bytes);
    CUdeviceptr device_product = example_alloc(bytes);
    void *parameters[] = {&device_a, &device_b, &device_product, &example->size};

    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuLaunchKernel(matmul, tiles, tiles, 1, TILE, TILE, 1, 0, NULL, parameters, NULL));
        example_progress(example, round);
    }
    CHECK(cuMemcpyDtoH(product, device_product, bytes));
    CHECK(cuMemFree(device_a));
    CHECK(cuMemFree(device_b));
    CHECK(cuMemFree(device_product));
}

int main(int argc, char **argv)
{
    struct example example = {.name = "matmul", .size = 128, .rounds = 1};
    float *a, *b, *product;
    bool correct;
    int status;

    example_open(&example, argc, argv, matmul_ptx);
    if (example.size % TILE != 0) {
        fprintf(stderr, "matmul: the size must be a multiple of %d\n", TILE);
        return EXIT_FAILURE;
    }
    a = random_matrix(example.size, 1);
    b = random_matrix(example.size, 2);
    product = example_buffer((size_t)example.size * example.size * sizeof(float));
    multiply_on_device(&example, a, b, product);

    correct = is_product(a, b, product, example.size);
    status = example_close(
        &example, correct,
        example_checksum(product, (size_t)example.size * example.size * sizeof(float)));
    free(a);
    free(b);
    free(product);
    return status;
}
