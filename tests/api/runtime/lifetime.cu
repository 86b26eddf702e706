// SPDX-License-Identifier: Apache-2.0
// Reset in the middle of a program, destructors of global objects, and work still queued at exit.
#include "check.cuh"

__device__ int counter = 40;

__global__ void count(int *out)
{
    *out = ++counter;
}

struct holder {
    int *pointer = nullptr;
    ~holder()
    {
        cudaFree(pointer);
        puts("global object destroyed");
    }
};

static struct holder holder;

static int counted()
{
    int *out = make(std::vector<int>(1));
    int value;

    count<<<1, 1>>>(out);
    EXPECT(cudaSuccess, cudaGetLastError());
    value = take(out, 1)[0];
    MUST(cudaFree(out));
    return value;
}

// A reset brings the module's variables back to what they were.
static void reset()
{
    IS_TRUE(counted() == 41);
    IS_TRUE(counted() == 42);
    EXPECT(cudaSuccess, cudaDeviceReset());
    IS_TRUE(counted() == 41);
}

int main()
{
    RUN(reset);
    MUST(cudaMalloc(&holder.pointer, 1000));
    for (int i = 0; i < 10; i++)
        count<<<1, 1>>>(holder.pointer);
    atexit([] { puts("handler"); });
    return check_close();
}
