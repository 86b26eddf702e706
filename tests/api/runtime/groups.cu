// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: grids, tiles of any size, coalesced and labeled groups, reductions and
// scans.
#include "check.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <algorithm>
#include <numeric>

namespace cg = cooperative_groups;

#define THREADS 128

static std::vector<int> numbers(int count)
{
    std::vector<int> values(count);
    uint32_t state = 5;

    for (int &value : values)
        value = (int)(next_random(state) % 1000);
    return values;
}

// What a kernel makes of the numbers, one result a thread.
template <typename F> static bool makes(void (*kernel)(const int *, int *), F expected)
{
    std::vector<int> values = numbers(THREADS);
    int *in = make(values), *out = make(std::vector<int>(THREADS));
    bool right = true;

    kernel<<<1, THREADS>>>(in, out);
    MUST(cudaGetLastError());
    std::vector<int> got = take(out, THREADS);
    for (int i = 0; i < THREADS; i++)
        right = right && got[i] == expected(values, i);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    return right;
}

static int sum_of(const std::vector<int> &values, int first, int count)
{
    return std::accumulate(values.begin() + first, values.begin() + first + count, 0);
}

// ---- Tiles ----

template <int SIZE> __global__ void reduce_tiles(const int *in, int *out)
{
    __shared__ cg::block_tile_memory<THREADS> memory; // tiles of more than a warp meet there
    auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block(memory));
    int value = in[threadIdx.x];
    int sum = cg::reduce(tile, value, cg::plus<int>());
    int most = cg::reduce(tile, value, cg::greater<int>());

    out[threadIdx.x] = sum * 1000 + most + (int)tile.meta_group_rank();
}

template <int SIZE> static bool tiles_of()
{
    return makes(reduce_tiles<SIZE>, [](const std::vector<int> &values, int i) {
        int first = i / SIZE * SIZE;
        return sum_of(values, first, SIZE) * 1000 +
               *std::max_element(values.begin() + first, values.begin() + first + SIZE) + i / SIZE;
    });
}

static void tiles()
{
    IS_TRUE(tiles_of<1>());
    IS_TRUE(tiles_of<4>());
    IS_TRUE(tiles_of<16>());
    IS_TRUE(tiles_of<32>());
    IS_TRUE(tiles_of<64>());
    IS_TRUE(tiles_of<128>());
}

__global__ void scan_tiles(const int *in, int *out)
{
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int value = in[threadIdx.x];

    out[threadIdx.x] =
        cg::inclusive_scan(tile, value) * 3 + cg::exclusive_scan(tile, value, cg::bit_xor<int>());
}

__global__ void vote_tiles(const int *in, int *out)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int value = in[threadIdx.x];

    out[threadIdx.x] = (int)tile.ballot(value & 1) + tile.shfl_down(value, 2) * 256 +
                       (tile.any(value > 950) != 0) * (1 << 20) +
                       (tile.all(value > 20) != 0) * (1 << 21);
}

static void scans_and_votes()
{
    IS_TRUE(makes(scan_tiles, [](const std::vector<int> &values, int i) {
        int before = 0;
        for (int at = i / 16 * 16; at < i; at++)
            before ^= values[at];
        return sum_of(values, i / 16 * 16, i % 16 + 1) * 3 + before;
    }));
    IS_TRUE(makes(vote_tiles, [](const std::vector<int> &values, int i) {
        int ballot = 0, any = 0, all = 1;
        for (int at = 0; at < 8; at++) {
            int value = values[i / 8 * 8 + at];
            ballot |= (value & 1) << at;
            any |= value > 950;
            all &= value > 20;
        }
        return ballot + values[i % 8 + 2 < 8 ? i + 2 : i] * 256 + any * (1 << 20) + all * (1 << 21);
    }));
}

// ---- Groups of those who happen to be there ----

__global__ void coalesce(const int *in, int *out)
{
    int value = in[threadIdx.x];

    out[threadIdx.x] = -1;
    if (value % 3 == 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        out[threadIdx.x] = cg::reduce(group, value, cg::plus<int>()) * 64 +
                           (int)group.thread_rank() + (group.shfl(value, 0) == value) * 32;
    }
}

__global__ void label(const int *in, int *out)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int value = in[threadIdx.x];
    auto same = cg::labeled_partition(warp, value % 5);
    auto even = cg::binary_partition(warp, value % 2 == 0);

    out[threadIdx.x] = cg::reduce(same, value, cg::plus<int>()) * 32 + (int)even.num_threads();
}

static void partitions()
{
    IS_TRUE(makes(coalesce, [](const std::vector<int> &values, int i) {
        int rank = 0, sum = 0, first = -1;
        for (int at = i / 32 * 32; at < i / 32 * 32 + 32; at++) {
            if (values[at] % 3)
                continue;
            first = first < 0 ? values[at] : first;
            rank += at < i;
            sum += values[at];
        }
        return values[i] % 3 ? -1 : sum * 64 + rank + (first == values[i]) * 32;
    }));
    IS_TRUE(makes(label, [](const std::vector<int> &values, int i) {
        int sum = 0, size = 0;
        for (int at = i / 32 * 32; at < i / 32 * 32 + 32; at++) {
            sum += values[at] % 5 == values[i] % 5 ? values[at] : 0;
            size += values[at] % 2 == values[i] % 2;
        }
        return sum * 32 + size;
    }));
}

// ---- The block and the grid ----

__global__ void copy_to_block(const int *in, int *out)
{
    __shared__ int data[THREADS];
    cg::thread_block block = cg::this_thread_block();

    cg::memcpy_async(block, data, in, sizeof(data));
    cg::wait(block);
    out[block.thread_rank()] = data[THREADS - 1 - block.thread_rank()];
}

static void blocks()
{
    IS_TRUE(makes(copy_to_block,
                  [](const std::vector<int> &values, int i) { return values[THREADS - 1 - i]; }));
}

// Every round needs what all blocks did in the one before.
__global__ void rounds_of_grid(int *data, int rounds)
{
    cg::grid_group grid = cg::this_grid();
    int count = (int)grid.num_threads(), i = (int)grid.thread_rank();

    for (int round = 0; round < rounds; round++) {
        int next = data[(i + 1) % count] + 1;
        grid.sync();
        data[i] = next;
        if (round % 2) {
            grid.sync();
        } else {
            auto token = grid.barrier_arrive();
            grid.barrier_wait(std::move(token));
        }
    }
}

static void grids()
{
    const int blocks = 6, count = blocks * 64;
    int rounds = 9;
    std::vector<int> values(count);
    bool right = true;

    for (int i = 0; i < count; i++)
        values[i] = i * 10;
    int *data = make(values);
    void *arguments[] = {&data, &rounds};
    MUST(cudaLaunchCooperativeKernel(rounds_of_grid, blocks, 64, arguments));
    values = take(data, count);
    for (int i = 0; i < count; i++)
        right = right && values[i] == (i + rounds) % count * 10 + rounds;
    IS_TRUE(right);
    MUST(cudaFree(data));
}

// Two grids of which each fills the device: the blocks of one must not keep the other's out.
static void grids_side_by_side()
{
    const int THREADS_PER_BLOCK = 256, ROUNDS = 3;
    int per_sm, sms, rounds = ROUNDS;
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, rounds_of_grid, THREADS_PER_BLOCK,
                                                       0));
    MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int blocks = per_sm * sms, count = blocks * THREADS_PER_BLOCK;
    cudaStream_t streams[2];
    int *data[2];

    for (int i = 0; i < 2; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        data[i] = make(std::vector<int>(count, i));
    }
    for (int launch = 0; launch < 8; launch++) {
        void *arguments[] = {&data[launch % 2], &rounds};
        MUST(cudaLaunchCooperativeKernel(rounds_of_grid, blocks, THREADS_PER_BLOCK, arguments, 0,
                                         streams[launch % 2]));
    }
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) {
        IS_TRUE(take(data[i], count) == std::vector<int>(count, i + 4 * ROUNDS));
        MUST(cudaFree(data[i]));
        MUST(cudaStreamDestroy(streams[i]));
    }
}

int main()
{
    RUN(tiles);
    RUN(scans_and_votes);
    RUN(partitions);
    RUN(blocks);
    RUN(grids);
    RUN(grids_side_by_side);
    return check_close();
}
