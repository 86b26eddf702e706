// SPDX-License-Identifier: Apache-2.0
// Kernels of the first tests. basics.ptx is made from this file by regenerate beside it.
extern "C" {

__global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int t = 0; t < n / TILE; t++) {
        tile_a[y][x] = a[row * n + t * TILE + x];
        tile_b[y][x] = b[(t * TILE + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void reduce_sum(const int *values, int n, int *sum)
{
    __shared__ int partial[32];
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += values[i];
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, step);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        partial[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = lane < blockDim.x / 32 ? partial[lane] : 0;
        for (int step = 16; step > 0; step /= 2)
            mine += __shfl_down_sync(0xffffffff, mine, step);
        if (lane == 0)
            atomicAdd(sum, mine);
    }
}

__global__ void histogram(const unsigned char *bytes, int n, unsigned *counts)
{
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[bytes[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&counts[i], local[i]);
}

__global__ void nbody(const float4 *bodies, float4 *forces, int n)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 force = make_float3(0, 0, 0);
    for (int start = 0; start < n; start += blockDim.x) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < blockDim.x; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float square = dx * dx + dy * dy + dz * dz + 0.01f;
            float inverse = rsqrtf(square);
            float scale = tile[k].w * inverse * inverse * inverse;
            force.x += dx * scale;
            force.y += dy * scale;
            force.z += dz * scale;
        }
        __syncthreads();
    }
    if (i < n)
        forces[i] = make_float4(force.x, force.y, force.z, 0);
}

__global__ void collatz(const unsigned *start, unsigned *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = start[i], count = 0;
    while (x != 1) {
        if (x & 1)
            x = 3 * x + 1;
        else
            x /= 2;
        count++;
    }
    steps[i] = count;
}
}
