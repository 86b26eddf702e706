// SPDX-License-Identifier: Apache-2.0
// Each block counts in shared memory, and adds its counts to the whole at the end.
#define BINS 256

extern "C" __global__ void histogram(const unsigned char *data, unsigned n, unsigned *counts)
{
    __shared__ unsigned mine[BINS];

    for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x)
        mine[i] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x)
        atomicAdd(&counts[i], mine[i]);
}
