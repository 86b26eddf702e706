/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest whole program: two vectors to the device, one kernel, one vector back.
 */
#include "example.h"

#include <stdlib.h>

#include "vector_add.ptx.h"

#define BLOCK 256

static void fill(float *values, unsigned n, uint32_t seed)
{
    for (unsigned i = 0; i < n; i++)
        values[i] = example_random_float(&seed);
}

static bool is_sum(const float *a, const float *b, const float *sum, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (sum[i] != a[i] + b[i])
            return false;
    }
    return true;
}

static void add_on_device(struct example *example, CUdeviceptr a, CUdeviceptr b, CUdeviceptr sum)
{
    CUfunction vector_add = example_function(example, "vector_add");
    void *parameters[] = {&a, &b, &sum, &example->size};

    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuLaunchKernel(vector_add, (example->size + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0,
                             NULL, parameters, NULL));
        example_progress(example, round);
    }
}

int main(int argc, char **argv)
{
    struct example example = {.name = "vector_add", .size = 100000, .rounds = 1};
    size_t bytes;
    float *a, *b, *sum;
    CUdeviceptr device_a, device_b, device_sum;
    bool correct;
    int status;

    example_open(&example, argc, argv, vector_add_ptx);
    bytes = example.size * sizeof(float);
    a = example_buffer(bytes);
    b = example_buffer(bytes);
    sum = example_buffer(bytes);
    fill(a, example.size, 1);
    fill(b, example.size, 2);

    device_a = example_upload(a, bytes);
    device_b = example_upload(b, bytes);
    device_sum = example_alloc(bytes);
    add_on_device(&example, device_a, device_b, device_sum);
    CHECK(cuMemcpyDtoH(sum, device_sum, bytes));
    CHECK(cuMemFree(device_a));
    CHECK(cuMemFree(device_b));
    CHECK(cuMemFree(device_sum));

    correct = is_sum(a, b, sum, example.size);
    status = example_close(&example, correct, example_checksum(sum, bytes));
    free(a);
    free(b);
    free(sum);
    return status;
}
