// SPDX-License-Identifier: Apache-2.0
// What a program sets on its kernels is its own: the bound of dynamic shared memory, the carveout,
// clusters.
// Copies of this program run at the same time, each with values of its own.
#include <unistd.h>

#include "check.cuh"

#include <cooperative_groups.h>

#define USUAL 49152

__global__ void with_shared(int *out)
{
    extern __shared__ int shared[];

    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (out && threadIdx.x == 0)
        *out = shared[blockDim.x - 1];
}

static cudaFuncAttributes attributes()
{
    cudaFuncAttributes attributes;

    MUST(cudaFuncGetAttributes(&attributes, with_shared));
    return attributes;
}

static int blocks_with(size_t shared)
{
    int blocks = -1;

    EXPECT(cudaSuccess,
           cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 128, shared));
    return blocks;
}

// Of a block that has a multiprocessor for itself.
static size_t available()
{
    size_t available = 0;

    EXPECT(cudaSuccess,
           cudaOccupancyAvailableDynamicSMemPerBlock(&available, with_shared, 1, 128));
    return available;
}

static cudaError_t launch_with(size_t shared)
{
    with_shared<<<1, 128, shared>>>(nullptr);
    return cudaGetLastError();
}

static void before_anything_is_set()
{
    IS_TRUE(attributes().maxDynamicSharedSizeBytes == USUAL);
    IS_TRUE(attributes().preferredShmemCarveout == -1);
    EXPECT(cudaSuccess, launch_with(USUAL));
    EXPECT(cudaErrorInvalidValue, launch_with(USUAL + 1));
    IS_TRUE(blocks_with(USUAL) > 0);
    IS_TRUE(blocks_with(USUAL + 1) == 0);
    IS_TRUE(blocks_with(90000) == 0);
    IS_TRUE(available() == USUAL);
    int grid = -1, block = -1;
    EXPECT(cudaSuccess, cudaOccupancyMaxPotentialBlockSize(&grid, &block, with_shared, USUAL + 1));
    IS_TRUE(grid == 0 && block == 0);
}

static void set(int bound, int carveout)
{
    EXPECT(cudaSuccess, cudaFuncSetAttribute(with_shared,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, bound));
    EXPECT(cudaSuccess,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributePreferredSharedMemoryCarveout,
                                carveout));
}

static void look(int bound, int carveout)
{
    IS_TRUE(attributes().maxDynamicSharedSizeBytes == bound);
    IS_TRUE(attributes().preferredShmemCarveout == carveout);
    EXPECT(cudaSuccess, launch_with(bound));
    EXPECT(cudaErrorInvalidValue, launch_with(bound + 1));
    IS_TRUE(blocks_with(bound) > 0);
    IS_TRUE(blocks_with(bound + 1) == 0);
    IS_TRUE(available() == (size_t)bound);
}

// Values that copies started one after the other do not share.
static void values_of_its_own()
{
    int own = getpid() % 64;

    for (int round = 0; round < 25; round++) {
        set(60000 + 1000 * own + round, own + 1);
        usleep(2000);
        look(60000 + 1000 * own + round, own + 1);
        set(USUAL, -1);
        usleep(1000);
        look(USUAL, -1);
    }
}

__global__ void name_cluster(unsigned *out)
{
    auto cluster = cooperative_groups::this_cluster();

    if (blockIdx.x + blockIdx.y == 0)
        *out = 100 * cluster.dim_blocks().x + 10 * cluster.dim_blocks().y + cluster.dim_blocks().z;
}

static void set_cluster(int width, int height, int depth)
{
    const cudaFuncAttribute sides[] = {cudaFuncAttributeRequiredClusterWidth,
                                       cudaFuncAttributeRequiredClusterHeight,
                                       cudaFuncAttributeRequiredClusterDepth};
    const int values[] = {width, height, depth};

    for (int i = 0; i < 3; i++)
        EXPECT(cudaSuccess, cudaFuncSetAttribute(name_cluster, sides[i], values[i]));
}

static unsigned cluster_of_launch()
{
    unsigned *out, cluster = 0;

    MUST(cudaMalloc(&out, sizeof(*out)));
    name_cluster<<<dim3(8, 2), 1>>>(out);
    EXPECT(cudaSuccess, cudaGetLastError());
    MUST(cudaMemcpy(&cluster, out, sizeof(cluster), cudaMemcpyDeviceToHost));
    MUST(cudaFree(out));
    return cluster;
}

// The same in a graph, whose nodes have what was set when they were made.
static unsigned cluster_of_graph()
{
    unsigned *out, cluster = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaMalloc(&out, sizeof(*out)));
    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    name_cluster<<<dim3(8, 2), 1, 0, stream>>>(out);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT(cudaSuccess, cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&cluster, out, sizeof(cluster), cudaMemcpyDeviceToHost));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(out));
    return cluster;
}

static void clusters_of_its_own()
{
    static const int sides[][3] = {{2, 1, 1}, {4, 2, 1}, {1, 2, 1}, {8, 1, 1}};
    const int *own = sides[getpid() % 4];
    unsigned expected = 100 * own[0] + 10 * own[1] + own[2];

    for (int round = 0; round < 25; round++) {
        set_cluster(own[0], own[1], own[2]);
        usleep(1000);
        IS_TRUE(cluster_of_launch() == expected);
        set_cluster(0, 0, 0);
        usleep(1000);
        IS_TRUE(cluster_of_launch() == 111);
    }
    set_cluster(own[0], own[1], own[2]);
    IS_TRUE(cluster_of_graph() == expected);
    set_cluster(3, 1, 1);
    name_cluster<<<dim3(8, 2), 1>>>(nullptr);
    EXPECT(cudaErrorInvalidClusterSize, cudaGetLastError());
    set_cluster(0, 0, 0);
}

static void what_cannot_be_set()
{
    EXPECT(cudaErrorInvalidValue,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                300 << 10));
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT(cudaErrorInvalidValue,
           cudaFuncSetAttribute(with_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    look(USUAL, -1);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
}

int main()
{
    RUN(before_anything_is_set);
    RUN(values_of_its_own);
    RUN(clusters_of_its_own);
    RUN(what_cannot_be_set);
    return check_close();
}
