// SPDX-License-Identifier: Apache-2.0
// Each block computes one tile of the product, and reads both factors tile by tile through shared
// memory. n is a multiple of the tile.
#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *product, unsigned n)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned row = blockIdx.y * TILE + threadIdx.y;
    unsigned column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;

    for (unsigned first = 0; first < n; first += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    product[row * n + column] = sum;
}
