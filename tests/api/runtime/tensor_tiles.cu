// SPDX-License-Identifier: Apache-2.0
// Tensor maps as programs use them: cuTensorMapEncodeTiled through the runtime, cuda::barrier, and the
// wrappers of libcu++ for bulk copies.
#include "check.cuh"

#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

constexpr int WIDTH = 200, HEIGHT = 120, BOX = 32;

static void *driver_call(const char *name)
{
    cudaDriverEntryPointQueryResult found;
    void *call = nullptr;

    MUST(cudaGetDriverEntryPointByVersion(name, &call, 12000, cudaEnableDefault, &found));
    IS_TRUE(found == cudaDriverEntryPointSuccess);
    return call;
}

static CUtensorMap map_of(int *matrix, CUtensorMapSwizzle swizzle)
{
    auto encode = (decltype(&cuTensorMapEncodeTiled))driver_call("cuTensorMapEncodeTiled");
    cuuint64_t dims[] = {WIDTH, HEIGHT}, strides[] = {WIDTH * sizeof(int)};
    cuuint32_t box[] = {BOX, BOX}, steps[] = {1, 1};
    CUtensorMap map;

    IS_TRUE(encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, dims, strides, box, steps,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return map;
}

// Each block takes a tile in, changes it, and puts it where the map says.
__global__ void change_tiles(const __grid_constant__ CUtensorMap from,
                             const __grid_constant__ CUtensorMap to, int added)
{
    __shared__ alignas(128) int tile[BOX][BOX];
    __shared__ block_barrier bar;
    int x = blockIdx.x * BOX, y = blockIdx.y * BOX;

    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    block_barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(tile, &from, x, y, bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < BOX * BOX; i += blockDim.x)
        tile[i / BOX][i % BOX] += added;
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::experimental::cp_async_bulk_tensor_2d_shared_to_global(&to, x, y, tile);
        cuda::device::experimental::cp_async_bulk_commit_group();
        cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
    }
}

static std::vector<int> numbers()
{
    std::vector<int> values(WIDTH * HEIGHT);

    for (size_t i = 0; i < values.size(); i++)
        values[i] = (int)(i * 2654435761u >> 7);
    return values;
}

static void tiles_are_changed()
{
    std::vector<int> values = numbers();
    int *from = make(values), *to = make(std::vector<int>(values.size()));
    dim3 grid((WIDTH + BOX - 1) / BOX, (HEIGHT + BOX - 1) / BOX);

    change_tiles<<<grid, 128>>>(map_of(from, CU_TENSOR_MAP_SWIZZLE_NONE),
                                map_of(to, CU_TENSOR_MAP_SWIZZLE_NONE), 5);
    std::vector<int> changed = take(to, values.size());
    for (int &value : values)
        value += 5;
    IS_TRUE(changed == values);
    IS_TRUE(take(from, values.size()) == numbers());
    MUST(cudaFree(from));
    MUST(cudaFree(to));
}

// A tile is transposed in shared memory, whose rows of 128 bytes are swizzled.
__global__ void transpose(const __grid_constant__ CUtensorMap from, int *to)
{
    __shared__ alignas(1024) unsigned char tile[BOX * 128];
    __shared__ uint64_t bar;
    int x = blockIdx.x * BOX, y = blockIdx.y * BOX;

    if (threadIdx.x == 0) {
        const int32_t at[] = {x, y};
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,
                                       sizeof(tile));
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at, &bar);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
    }
    for (int i = threadIdx.x; i < BOX * BOX; i += blockDim.x) {
        int row = i % BOX, column = i / BOX;
        int chunk = (column / 4) ^ (row % 8);
        int value = *(const int *)(tile + row * 128 + chunk * 16 + column % 4 * 4);

        if (x + column < WIDTH && y + row < HEIGHT)
            to[(x + column) * HEIGHT + y + row] = value;
    }
}

static void tiles_are_transposed()
{
    std::vector<int> values = numbers(), wanted(values.size());
    int *from = make(values), *to = make(std::vector<int>(values.size()));
    dim3 grid((WIDTH + BOX - 1) / BOX, (HEIGHT + BOX - 1) / BOX);

    transpose<<<grid, 128>>>(map_of(from, CU_TENSOR_MAP_SWIZZLE_128B), to);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            wanted[x * HEIGHT + y] = values[y * WIDTH + x];
    IS_TRUE(take(to, values.size()) == wanted);
    MUST(cudaFree(from));
    MUST(cudaFree(to));
}

int main()
{
    cudaDeviceProp properties;

    MUST(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9) {
        puts("the kernels are for devices of compute capability 9.0");
        return 77;
    }
    RUN(tiles_are_changed);
    RUN(tiles_are_transposed);
    return check_close();
}
