// SPDX-License-Identifier: Apache-2.0
// Tiled matrix product with bounds that no tile fits, and a fused multiply-add on both sides.
#include "check.cuh"

#include <cmath>

#define TILE 16

__global__ void multiply(const float *a, const float *b, float *c, int rows, int inner, int columns)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;

    for (int first = 0; first < inner; first += TILE) {
        int ka = first + threadIdx.x, kb = first + threadIdx.y;

        tile_a[threadIdx.y][threadIdx.x] = row < rows && ka < inner ? a[row * inner + ka] : 0;
        tile_b[threadIdx.y][threadIdx.x] =
            column < columns && kb < inner ? b[kb * columns + column] : 0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum = fmaf(tile_a[threadIdx.y][k], tile_b[k][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < rows && column < columns)
        c[row * columns + column] = sum;
}

static void check(int rows, int inner, int columns)
{
    std::vector<float> a(rows * inner), b(inner * columns), c(rows * columns);
    uint32_t seed = 1;
    bool right = true;

    for (float &value : a)
        value = (float)next_random(seed) / (1 << 24) - 0.5f;
    for (float &value : b)
        value = (float)next_random(seed) / (1 << 24) - 0.5f;
    float *device_a = make(a), *device_b = make(b), *device_c = make(c);
    dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), block(TILE, TILE);

    multiply<<<grid, block>>>(device_a, device_b, device_c, rows, inner, columns);
    EXPECT(cudaSuccess, cudaGetLastError());
    c = take(device_c, c.size());
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
            float sum = 0;

            for (int k = 0; k < inner; k++)
                sum = fmaf(a[row * inner + k], b[k * columns + column], sum);
            right &= c[row * columns + column] == sum;
        }
    }
    IS_TRUE(right);
    MUST(cudaFree(device_a));
    MUST(cudaFree(device_b));
    MUST(cudaFree(device_c));
}

static void whole_tiles()
{
    check(64, 64, 64);
}

static void odd_sizes()
{
    check(1, 1, 1);
    check(33, 50, 17);
    check(5, 100, 70);
}

int main()
{
    RUN(whole_tiles);
    RUN(odd_sizes);
    return check_close();
}
