// SPDX-License-Identifier: Apache-2.0
// A sum in three steps: lanes of a warp by shuffles, warps of a block through shared memory, and
// blocks by an atomic addition.
__device__ unsigned long long sum_of_warp(unsigned long long value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffff, value, distance);
    return value;
}

extern "C" __global__ void reduction(const unsigned *data, unsigned n, unsigned long long *sum)
{
    __shared__ unsigned long long of_warp[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned long long mine = 0;

    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += data[i];
    mine = sum_of_warp(mine);
    if (lane == 0)
        of_warp[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = sum_of_warp(lane < blockDim.x / 32 ? of_warp[lane] : 0);
        if (lane == 0)
            atomicAdd(sum, mine);
    }
}
