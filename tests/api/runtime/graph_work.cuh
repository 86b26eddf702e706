// SPDX-License-Identifier: Apache-2.0
// What the graphs of these tests do.
#ifndef FUNNEL_TEST_GRAPH_WORK_CUH
#define FUNNEL_TEST_GRAPH_WORK_CUH

#include "check.cuh"

enum { COUNT = 4096 };

__global__ void scale(float *out, const float *in, float factor, unsigned count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        out[i] = in[i] * factor;
}

static void run_scale(float *out, const float *in, float factor, cudaStream_t stream)
{
    scale<<<COUNT / 256, 256, 0, stream>>>(out, in, factor, COUNT);
    EXPECT(cudaSuccess, cudaGetLastError());
}

static bool all_are(const float *pointer, float value)
{
    for (float x : take(pointer, COUNT))
        if (x != value)
            return false;
    return true;
}

static cudaStream_t make_stream()
{
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

#endif
