// SPDX-License-Identifier: Apache-2.0
// A matrix product as libraries for Hopper make it. One warp fetches tiles by tensor maps into a
// ring in shared memory, and a warpgroup multiplies them there. One thread of the warpgroup alone
// gives a place in the ring back. So it relies on wgmma.wait_group to mean that all four warps have
// read it.
#include "check.cuh"

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_fp16.h>

namespace ptx = cuda::ptx;

constexpr int TILE = 64;  // rows and columns of a block's part of C, and elements along k of a stage
constexpr int STAGES = 3;
constexpr int M = 192, N = 128, K = 1024;
constexpr unsigned TILE_BYTES = TILE * TILE * sizeof(half);

struct ring {
    alignas(1024) half a[STAGES][TILE * TILE];
    alignas(1024) half b[STAGES][TILE * TILE];
    uint64_t full[STAGES], empty[STAGES];
};

static CUtensorMap map_of(half *matrix, int rows)
{
    cudaDriverEntryPointQueryResult found;
    void *call = nullptr;
    cuuint64_t dims[] = {K, (cuuint64_t)rows}, strides[] = {K * sizeof(half)};
    cuuint32_t box[] = {TILE, TILE}, steps[] = {1, 1};
    CUtensorMap map;

    MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &call, 12000, cudaEnableDefault,
                                          &found));
    IS_TRUE(((decltype(&cuTensorMapEncodeTiled))call)(
                &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, dims, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) ==
            CUDA_SUCCESS);
    return map;
}

__device__ static void wait_for(uint64_t *barrier, unsigned parity)
{
    while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
    }
}

__device__ static void fetch(ring &ring, const CUtensorMap &a, const CUtensorMap &b)
{
    for (int step = 0; step < K / TILE; step++) {
        int stage = step % STAGES, turn = step / STAGES;
        const int32_t at_a[] = {step * TILE, (int)blockIdx.y * TILE};
        const int32_t at_b[] = {step * TILE, (int)blockIdx.x * TILE};

        if (turn > 0)
            wait_for(&ring.empty[stage], (turn - 1) & 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                       &ring.full[stage], 2 * TILE_BYTES);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, ring.a[stage], &a, at_a,
                                  &ring.full[stage]);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, ring.b[stage], &b, at_b,
                                  &ring.full[stage]);
    }
}

// Rows of 128 bytes, swizzled; eight of them are 1024 bytes.
__device__ static uint64_t descriptor(const half *tile, int k)
{
    uint32_t start = (uint32_t)__cvta_generic_to_shared(tile) + k * sizeof(half);

    return (uint64_t)(start >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define EIGHT(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
        "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ static void multiply(float (&d)[32], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1, 0, 0;"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)
                 : "l"(a), "l"(b));
}

// Some warps come late.
__device__ static void linger()
{
    for (volatile int i = 0; i < 3000; i = i + 1) {
    }
}

__device__ static void multiply_all(ring &ring, float (&d)[32])
{
    for (int step = 0; step < K / TILE; step++) {
        int stage = step % STAGES, turn = step / STAGES;

        wait_for(&ring.full[stage], turn & 1);
        if (threadIdx.x >= 64)
            linger();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < TILE; k += 16)
            multiply(d, descriptor(ring.a[stage], k), descriptor(ring.b[stage], k));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x == 0)
            ptx::mbarrier_arrive(&ring.empty[stage]);
    }
}

__global__ void matmul(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                       float *c)
{
    extern __shared__ unsigned char memory[];
    ring &own = *(ring *)(((uintptr_t)memory + 1023) & ~(uintptr_t)1023);
    float d[32] = {};

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(&own.full[i], 1);
            ptx::mbarrier_init(&own.empty[i], 1);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128)
            fetch(own, a, b);
        return;
    }
    multiply_all(own, d);
    for (int i = 0; i < 32; i++) {
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
        int column = threadIdx.x % 4 * 2 + i % 2 + i / 4 * 8;

        c[(blockIdx.y * TILE + row) * N + blockIdx.x * TILE + column] = d[i];
    }
}

static std::vector<half> numbers(int rows, uint32_t seed)
{
    std::vector<half> values(rows * K);

    for (half &value : values)
        value = (float)(int)(next_random(seed) % 7) - 3;
    return values;
}

static bool is_product(const std::vector<float> &c, const std::vector<half> &a,
                       const std::vector<half> &b)
{
    for (int row = 0; row < M; row++) {
        for (int column = 0; column < N; column++) {
            float sum = 0;

            for (int k = 0; k < K; k++)
                sum += (float)a[row * K + k] * (float)b[column * K + k];
            if (c[row * N + column] != sum)
                return false;
        }
    }
    return true;
}

static void products()
{
    std::vector<half> a = numbers(M, 1), b = numbers(N, 2);
    half *device_a = make(a), *device_b = make(b);
    float *c = make(std::vector<float>(M * N));

    MUST(cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(ring) + 1024));
    for (int round = 0; round < 5; round++) {
        MUST(cudaMemset(c, 0, M * N * sizeof(float)));
        matmul<<<dim3(N / TILE, M / TILE), 160, sizeof(ring) + 1024>>>(map_of(device_a, M),
                                                                       map_of(device_b, N), c);
        MUST(cudaGetLastError());
        IS_TRUE(is_product(take(c, M * N), a, b));
    }
    MUST(cudaFree(device_a));
    MUST(cudaFree(device_b));
    MUST(cudaFree(c));
}

int main()
{
    cudaDeviceProp properties;

    MUST(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9) {
        puts("the kernels are for devices of compute capability 9.0");
        return 77;
    }
    RUN(products);
    return check_close();
}
