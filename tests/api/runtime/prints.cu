// SPDX-License-Identifier: Apache-2.0
// printf from a kernel, in the order in which one thread says it.
#include "check.cuh"

__global__ void say(int n)
{
    for (int i = 0; i < n; i++)
        printf("%d: %u %lld %5.2f %s %%\n", i, 3000000000u, -5000000000ll, i / 4.0, "text");
}

// A graph that prints, again and again.
static void print_from_graphs()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    say<<<1, 1, 0, stream>>>(1);
    say<<<1, 1, 0, stream>>>(2);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        printf("launch %d\n", i);
        fflush(stdout);
        EXPECT(cudaSuccess, cudaGraphLaunch(exec, stream));
        EXPECT(cudaSuccess, cudaStreamSynchronize(stream));
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
}

int main()
{
    puts("before");
    fflush(stdout);
    say<<<1, 1>>>(3);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    print_from_graphs();
    puts("after");
    return check_close();
}
