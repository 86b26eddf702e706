// SPDX-License-Identifier: Apache-2.0
// Kernels that decide what else of their graph runs. conditions.ptx is made by ./regenerate.
#include <cuda_runtime.h>

struct decision {
    unsigned char unused;
    cudaGraphConditionalHandle handle;
    unsigned value;
};

extern "C" {
__global__ void decide(cudaGraphConditionalHandle handle, const unsigned *value)
{
    cudaGraphSetConditional(handle, *value);
}

__global__ void decide_whole(unsigned char unused, struct decision decision)
{
    cudaGraphSetConditional(decision.handle, decision.value);
}

__global__ void count_down(unsigned *counter, cudaGraphConditionalHandle handle)
{
    cudaGraphSetConditional(handle, --*counter);
}

// The digits of `out` are the order of the calls.
__global__ void note(unsigned *out, unsigned digit)
{
    *out = *out * 10 + digit;
}
}
