// SPDX-License-Identifier: Apache-2.0
// The kernels of the driver API programs. kernels.ptx and kernels.fatbin are made from this file
// by ./regenerate, and kept, so that the programs need no CUDA toolkit.

typedef unsigned int u32;

extern "C" {

__device__ u32 counter = 5;
__device__ u32 zeroed[4];
__constant__ u32 table[4] = {10, 20, 30, 40};

__global__ void nothing()
{
}

__global__ void fill(u32 *out, u32 value, u32 n)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = value;
}

__global__ void copy(u32 *out, const u32 *in, u32 n)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}

// Takes its time before it writes, so that work which did not wait for it shows.
__global__ void slow_add(u32 *out, u32 value, u32 n, u32 turns)
{
    u32 x = value;

    for (u32 i = 0; i < turns; i++)
        x = x * 1664525 + 1013904223;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] += x == 0 && turns != 0 ? value + 1 : value;
}

// Not commutative, so the result tells the order: out = out * factor + value.
__global__ void step(u32 *out, u32 factor, u32 value, u32 turns)
{
    u32 x = value;

    for (u32 i = 0; i < turns; i++)
        x = x * 1664525 + 1013904223;
    *out = *out * factor + (x == 0 && turns != 0 ? value + 1 : value);
}

__global__ void read_globals(u32 *out)
{
    out[0] = counter++;
    out[1] = zeroed[0] + zeroed[1] + zeroed[2] + zeroed[3];
    for (u32 i = 0; i < 4; i++)
        out[2 + i] = table[i];
}

__global__ void shape(u32 *out)
{
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);

    atomicAdd(out, 1);
    atomicAdd(out + 1, block * 1000 + thread);
}

__global__ void reverse(u32 *data)
{
    extern __shared__ u32 held[];

    held[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

struct mixed {
    char c;
    double d;
    short s;
    u32 array[3];
    unsigned long long l;
};

__global__ void parameters(unsigned char a, u32 *out, short b, struct mixed m, double e, char f)
{
    out[0] = a;
    out[1] = (u32)(int)b;
    out[2] = m.c;
    out[3] = (u32)m.d;
    out[4] = (u32)(int)m.s;
    out[5] = m.array[0] + m.array[1] + m.array[2];
    out[6] = (u32)(m.l >> 32);
    out[7] = (u32)m.l;
    out[8] = (u32)e;
    out[9] = (u32)(int)f;
}

struct big {
    u32 words[1020];
};

// 8 + 4080 + 8 = 4096 bytes of parameters.
__global__ void big_parameters(u32 *out, struct big big, u32 n, u32 factor)
{
    u32 sum = 0;

    for (u32 i = 0; i < n; i++)
        sum += big.words[i] * (i + 1);
    *out = sum * factor;
}

__global__ void __launch_bounds__(64) at_most_64(u32 *out)
{
    atomicAdd(out, 1);
}

__global__ void store(u32 *address, u32 value)
{
    *address = value;
}

__global__ void trap()
{
    asm("trap;");
}
}
