// SPDX-License-Identifier: Apache-2.0
// The other unit of the program "separate".
#include "../separate.cuh"

__device__ int table[4] = {1, 10, 100, 1000};
__constant__ Shape shapes[3] = {{2, 3}, {1, 1}, {0.5f, 1}};
__managed__ int counter = 40;

static __device__ int hidden = 100;

__device__ int twice(int x)
{
    return 2 * x;
}

__device__ int next(int x)
{
    return x + 1;
}

__device__ Step *steps[2] = {twice, next};

__device__ float area(const Shape &shape)
{
    return shape.width * shape.height;
}

__device__ void say(int number)
{
    printf("the number of the other unit: %d\n", number);
}

__global__ void count(int by)
{
    hidden += by;
}

int count_elsewhere(int by)
{
    int value = 0;

    count<<<1, 1>>>(by);
    MUST(cudaMemcpyFromSymbol(&value, hidden, sizeof(value)));
    return value;
}
