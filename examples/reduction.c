/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sum of many numbers: shuffles within warps, shared memory within blocks, one atomic addition
 * a block.
 */
#include "example.h"

#include <stdlib.h>

#include "reduction.ptx.h"

#define BLOCK 256
#define MAX_BLOCKS 256

static uint64_t sum_on_host(const uint32_t *data, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += data[i];
    return sum;
}

static unsigned blocks_for(unsigned n)
{
    unsigned blocks = (n + BLOCK - 1) / BLOCK;

    return blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS;
}

static uint64_t sum_on_device(struct example *example, CUdeviceptr data)
{
    CUfunction reduction = example_function(example, "reduction");
    CUdeviceptr device_sum = example_alloc(sizeof(uint64_t));
    void *parameters[] = {&data, &example->size, &device_sum};
    uint64_t sum;

    for (unsigned round = 0; round < example->rounds; round++) {
        CHECK(cuMemsetD32(device_sum, 0, 2));
        CHECK(cuLaunchKernel(reduction, blocks_for(example->size), 1, 1, BLOCK, 1, 1, 0, NULL,
                             parameters, NULL));
        example_progress(example, round);
    }
    CHECK(cuMemcpyDtoH(&sum, device_sum, sizeof(sum)));
    CHECK(cuMemFree(device_sum));
    return sum;
}

int main(int argc, char **argv)
{
    struct example example = {.name = "reduction", .size = 200000, .rounds = 1};
    uint32_t seed = 1;
    uint32_t *data;
    uint64_t sum;
    CUdeviceptr device_data;
    int status;

    example_open(&example, argc, argv, reduction_ptx);
    data = example_buffer(example.size * sizeof(*data));
    for (unsigned i = 0; i < example.size; i++)
        data[i] = example_random(&seed);

    device_data = example_upload(data, example.size * sizeof(*data));
    sum = sum_on_device(&example, device_data);
    CHECK(cuMemFree(device_data));
    status = example_close(&example, sum == sum_on_host(data, example.size), sum);
    free(data);
    return status;
}
