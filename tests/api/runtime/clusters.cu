// SPDX-License-Identifier: Apache-2.0
// Clusters: blocks that share their shared memory, and bulk copies between all kinds of memory.
#include "check.cuh"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

template <typename... Expected, typename... Given>
static cudaError_t launch(void (*kernel)(Expected...), dim3 grid, dim3 block, dim3 cluster,
                          cudaStream_t stream, Given... given)
{
    cudaLaunchAttribute attribute[1];
    cudaLaunchConfig_t config = {};

    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = cluster.x;
    attribute[0].val.clusterDim.y = cluster.y;
    attribute[0].val.clusterDim.z = cluster.z;
    config.gridDim = grid;
    config.blockDim = block;
    config.attrs = attribute;
    config.numAttrs = 1;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, Expected(given)...);
}

// ---- Who is who ----

__global__ void name_blocks(unsigned *out)
{
    cg::cluster_group cluster = cg::this_cluster();
    cg::grid_group grid = cg::this_grid();
    unsigned number = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned *own = out + 8 * number;

    if (threadIdx.x)
        return;
    own[0] = cluster.block_rank();
    own[1] = cluster.num_blocks();
    own[2] = cluster.block_index().x | cluster.block_index().y << 8 | cluster.block_index().z << 16;
    own[3] = cluster.dim_blocks().x | cluster.dim_blocks().y << 8 | cluster.dim_blocks().z << 16;
    own[4] = (unsigned)grid.cluster_rank();
    own[5] = (unsigned)grid.num_clusters();
    own[6] = cluster.num_threads();
    own[7] = __isClusterShared(out);
}

static void names()
{
    unsigned *out = make(std::vector<unsigned>(8 * 48));

    MUST(launch(name_blocks, dim3(4, 6, 2), dim3(40), dim3(2, 3, 1), 0, out));
    for (unsigned word : take(out, 8 * 48))
        printf("%x ", word);
    puts("");
    MUST(cudaFree(out));
}

// ---- Shared memory of others ----

#define BINS_PER_BLOCK 16
#define BLOCKS 4

__global__ void __cluster_dims__(BLOCKS, 1, 1) count(const unsigned char *data, int size, int *out)
{
    __shared__ int bins[BINS_PER_BLOCK];
    cg::cluster_group cluster = cg::this_cluster();

    if (threadIdx.x < BINS_PER_BLOCK)
        bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = (int)cluster.thread_rank(); i < size; i += (int)cluster.num_threads()) {
        int bin = data[i] % (BINS_PER_BLOCK * BLOCKS);
        int *there = cluster.map_shared_rank(bins, bin / BINS_PER_BLOCK);
        atomicAdd(there + bin % BINS_PER_BLOCK, 1);
    }
    cluster.sync();
    if (threadIdx.x < BINS_PER_BLOCK)
        atomicAdd(&out[cluster.block_rank() * BINS_PER_BLOCK + threadIdx.x], bins[threadIdx.x]);
}

static void distributed_histogram()
{
    std::vector<unsigned char> data(10000);
    std::vector<int> expected(BINS_PER_BLOCK * BLOCKS);
    uint32_t state = 7;

    for (unsigned char &one : data) {
        one = (unsigned char)next_random(state);
        expected[one % expected.size()] += 2;
    }
    unsigned char *in = make(data);
    int *out = make(std::vector<int>(expected.size()));
    count<<<2 * BLOCKS, 96>>>(in, (int)data.size(), out);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    IS_TRUE(take(out, expected.size()) == expected);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

// Every block writes to its neighbor, again and again; arriving and waiting are apart.
__global__ void pass_on(int *out, int rounds)
{
    __shared__ int box[2][32];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    int value = (int)(rank * 100 + threadIdx.x);

    for (int round = 0; round < rounds; round++) {
        *cluster.map_shared_rank(&box[round & 1][threadIdx.x], next) = value;
        cluster.barrier_arrive();
        cluster.barrier_wait();
        value = box[round & 1][threadIdx.x] + 1;
    }
    // A pointer into the cluster says whose it is.
    if (cluster.query_shared_rank(cluster.map_shared_rank(&box[0][0], next)) != next)
        value = -1;
    cluster.sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static void neighbors()
{
    const int rounds = 21, blocks = 8;
    int *out = make(std::vector<int>(blocks * 32));

    MUST(launch(pass_on, dim3(blocks), dim3(32), dim3(blocks), 0, out, rounds));
    std::vector<int> got = take(out, blocks * 32);
    bool all = true;
    for (int i = 0; i < blocks * 32; i++)
        all = all && got[i] == (i / 32 + blocks * 3 - rounds) % blocks * 100 + i % 32 + rounds;
    IS_TRUE(all);
    MUST(cudaFree(out));
}

// ---- Bulk copies ----

#define WORDS 256

__global__ void copy_in_bulk(const int *in, int *out)
{
    __shared__ alignas(128) int box[WORDS];
    __shared__ block_barrier barrier;
    block_barrier::arrival_token token;
    int i = threadIdx.x;

    if (i == 0) {
        init(&barrier, blockDim.x);
        ptx::fence_proxy_async();
    }
    __syncthreads();
    if (i == 0) {
        cuda::device::memcpy_async_tx(box, in + WORDS * blockIdx.x,
                                      cuda::aligned_size_t<16>(sizeof(box)), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(box));
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    for (int at = i; at < WORDS; at += blockDim.x)
        box[at] = box[at] * 3 + (int)blockIdx.x;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (i == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + WORDS * blockIdx.x, box,
                           sizeof(box));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add,
                                  out + WORDS * gridDim.x, box, sizeof(box));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

static void bulk_copies()
{
    const int blocks = 3;
    std::vector<int> data(WORDS * blocks), expected(WORDS * (blocks + 1));

    for (size_t i = 0; i < data.size(); i++) {
        data[i] = (int)(i * i);
        expected[i] = data[i] * 3 + (int)(i / WORDS);
        expected[WORDS * blocks + i % WORDS] += expected[i];
    }
    int *in = make(data), *out = make(std::vector<int>(expected.size()));
    copy_in_bulk<<<blocks, 64>>>(in, out);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    IS_TRUE(take(out, expected.size()) == expected);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

// The first block reads for all; then each sends its sum to the first with a store that arrives.
__global__ void __cluster_dims__(4, 1, 1) spread(const int *in, int *out)
{
    __shared__ alignas(128) int box[WORDS];
    __shared__ alignas(8) uint64_t barrier, sums_barrier;
    __shared__ int sums[4], sum;
    cg::cluster_group cluster = cg::this_cluster();
    int i = threadIdx.x, rank = (int)cluster.block_rank();

    if (i == 0) {
        sum = 0;
        ptx::mbarrier_init(&barrier, 1);
        ptx::mbarrier_init(&sums_barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                       &barrier, sizeof(box));
        if (rank == 0)
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                           &sums_barrier, sizeof(sums));
    }
    cluster.sync();
    if (rank == 0 && i == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(box)),
                     "l"(in), "r"((unsigned)sizeof(box)),
                     "r"((unsigned)__cvta_generic_to_shared(&barrier)), "h"((uint16_t)0xf)
                     : "memory");
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0))
        ;
    atomicAdd(&sum, box[i] * (rank + 1));
    __syncthreads();
    if (i == 0)
        ptx::st_async(cluster.map_shared_rank(&sums[rank], 0), sum,
                      cluster.map_shared_rank(&sums_barrier, 0));
    if (rank == 0) {
        while (!ptx::mbarrier_try_wait_parity(&sums_barrier, 0))
            ;
        if (i < 4)
            out[i] = sums[i];
    }
    cluster.sync();
}

static void multicast()
{
    std::vector<int> data(WORDS), expected(4);

    for (int i = 0; i < WORDS; i++)
        data[i] = i * 7 % 31;
    for (int i = 0; i < WORDS * 4; i++)
        expected[i / WORDS] += data[i % WORDS] * (i / WORDS + 1);
    int *in = make(data), *out = make(std::vector<int>(4));
    spread<<<4, WORDS>>>(in, out);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    IS_TRUE(take(out, 4) == expected);
    MUST(cudaFree(in));
    MUST(cudaFree(out));
}

// ---- Launching ----

static void occupancy()
{
    cudaLaunchAttribute attribute[1];
    cudaLaunchConfig_t config = {};
    int clusters = 0, size = 0;

    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim = {2, 1, 1};
    config.gridDim = dim3(16);
    config.blockDim = dim3(32);
    config.attrs = attribute;
    config.numAttrs = 1;
    MUST(cudaOccupancyMaxActiveClusters(&clusters, pass_on, &config));
    IS_TRUE(clusters >= 8);
    MUST(cudaOccupancyMaxPotentialClusterSize(&size, pass_on, &config));
    IS_TRUE(size == 8);
}

__global__ void __cluster_dims__(2, 1, 1) pair(int *out)
{
    if (out)
        *out = 1;
}

__global__ void single(int *out)
{
    if (out)
        *out = 1;
}

// Refused at once, and the context goes on.
static void impossible()
{
    int *none = nullptr;

    EXPECT(cudaErrorInvalidClusterSize, launch(single, dim3(3), dim3(32), dim3(2), 0, none));
    EXPECT(cudaErrorInvalidClusterSize, launch(single, dim3(16), dim3(32), dim3(16), 0, none));
    EXPECT(cudaErrorInvalidClusterSize, launch(single, dim3(64), dim3(32), dim3(32), 0, none));
    EXPECT(cudaErrorInvalidClusterSize, launch(pair, dim3(8), dim3(32), dim3(4), 0, none));
    pair<<<3, 32>>>(none);
    EXPECT(cudaErrorInvalidClusterSize, cudaGetLastError());
    pair<<<4, 32>>>(none);
    EXPECT(cudaSuccess, cudaGetLastError());
    MUST(cudaFuncSetAttribute(single, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    MUST(launch(single, dim3(16), dim3(32), dim3(16), 0, none));
    MUST(cudaDeviceSynchronize());
}

static void in_a_graph()
{
    const int blocks = 4, rounds = 4;
    int *out = make(std::vector<int>(blocks * 32));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(launch(pass_on, dim3(blocks), dim3(32), dim3(blocks), stream, out, rounds));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    std::vector<int> got = take(out, blocks * 32);
    bool all = true;
    for (int i = 0; i < blocks * 32; i++)
        all = all && got[i] == i / 32 * 100 + i % 32 + rounds;
    IS_TRUE(all);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(out));
}

int main()
{
    int capable = 0;

    MUST(cudaFree(nullptr));
    MUST(cudaDeviceGetAttribute(&capable, cudaDevAttrClusterLaunch, 0));
    if (!capable) {
        puts("no clusters");
        return 77;
    }
    RUN(names);
    RUN(distributed_histogram);
    RUN(neighbors);
    RUN(bulk_copies);
    RUN(multicast);
    RUN(occupancy);
    RUN(impossible);
    RUN(in_a_graph);
    return check_close();
}
