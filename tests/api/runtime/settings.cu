// SPDX-License-Identifier: Apache-2.0
// What a program sets on its kernels is its own: the bound of dynamic shared memory, the carveout.
// Copies of this program run at the same time, each with values of its own.
#include <unistd.h>

#include "check.cuh"

#define USUAL 49152

__global__ void with_shared(int *out)
{
    extern __shared__ int shared[];

    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (out && threadIdx.x == 0)
        *out = shared[blockDim.x - 1];
}

static cudaFuncAttributes attributes()
{
    cudaFuncAttributes attributes;

    MUST(cudaFuncGetAttributes(&attributes, with_shared));
    return attributes;
}

static int blocks_with(size_t shared)
{
    int blocks = -1;

    EXPECT(cudaSuccess,
           cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 128, shared));
    return blocks;
}

// Of a block that has a multiprocessor for itself.
static size_t available()
{
    size_t available = 0;

    EXPECT(cudaSuccess,
           cudaOccupancyAvailableDynamicSMemPerBlock(&available, with_shared, 1, 128));
    return available;
}

static cudaError_t launch_with(size_t shared)
{
    with_shared<<<1, 128, shared>>>(nullptr);
    return cudaGetLastError();
}

static void before_anything_is_set()
{
    IS_TRUE(attributes().maxDynamicSharedSizeBytes == USUAL);
    IS_TRUE(attributes().preferredShmemCarveout == -1);
    EXPECT(cudaSuccess, launch_with(USUAL));
    EXPECT(cudaErrorInvalidValue, launch_with(USUAL + 1));
    IS_TRUE(blocks_with(USUAL) > 0);
    IS_TRUE(blocks_with(USUAL + 1) == 0);
    IS_TRUE(blocks_with(90000) == 0);
    IS_TRUE(available() == USUAL);
    int grid = -1, block = -1;
    EXPECT(cudaSuccess, cudaOccupancyMaxPotentialBlockSize(&grid, &block, with_shared, USUAL + 1));
    IS_TRUE(grid == 0 && block == 0);
}

static void set(int bound, int carveout)
{
    EXPECT(cudaSuccess, cudaFuncSetAttribute(with_shared,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, bound));
    EXPECT(cudaSuccess,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributePreferredSharedMemoryCarveout,
                                carveout));
}

static void look(int bound, int carveout)
{
    IS_TRUE(attributes().maxDynamicSharedSizeBytes == bound);
    IS_TRUE(attributes().preferredShmemCarveout == carveout);
    EXPECT(cudaSuccess, launch_with(bound));
    EXPECT(cudaErrorInvalidValue, launch_with(bound + 1));
    IS_TRUE(blocks_with(bound) > 0);
    IS_TRUE(blocks_with(bound + 1) == 0);
    IS_TRUE(available() == (size_t)bound);
}

// Values that copies started one after the other do not share.
static void values_of_its_own()
{
    int own = getpid() % 64;

    for (int round = 0; round < 25; round++) {
        set(60000 + 1000 * own + round, own + 1);
        usleep(2000);
        look(60000 + 1000 * own + round, own + 1);
        set(USUAL, -1);
        usleep(1000);
        look(USUAL, -1);
    }
}

static void what_cannot_be_set()
{
    EXPECT(cudaErrorInvalidValue,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                300 << 10));
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT(cudaErrorInvalidValue,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    look(USUAL, -1);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
}

int main()
{
    RUN(before_anything_is_set);
    RUN(values_of_its_own);
    RUN(what_cannot_be_set);
    return check_close();
}
