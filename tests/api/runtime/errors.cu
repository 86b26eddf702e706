// SPDX-License-Identifier: Apache-2.0
// Errors of the program are its own, come from the call that made them, and do not stay.
#include "check.cuh"

__global__ void nothing(int *out)
{
    if (out)
        *out = 1;
}

__global__ void __launch_bounds__(128) bounded(int *out)
{
    if (out)
        *out = threadIdx.x;
}

static void last_error()
{
    EXPECT(cudaErrorInvalidValue, cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyHostToDevice));
    EXPECT(cudaErrorInvalidValue, cudaPeekAtLastError());
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT(cudaSuccess, cudaGetLastError());
}

// Runtimes differ in which of the two it is; printed, so that Funnel must agree with the device.
static void refused(dim3 grid, dim3 block)
{
    nothing<<<grid, block>>>(nullptr);
    cudaError_t error = cudaGetLastError();

    IS_TRUE(error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue);
    puts(cudaGetErrorName(error));
}

static void launch_shapes()
{
    refused(1, 1025);
    refused(dim3(1, 65536), 1);
    refused(1, dim3(1, 1, 65));
    refused(0, 1);
    nothing<<<1, 1, 64 << 20>>>(nullptr);
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    bounded<<<1, 128>>>(nullptr);
    EXPECT(cudaSuccess, cudaGetLastError());
    bounded<<<1, 129>>>(nullptr);
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
}

static void devices()
{
    cudaDeviceProp properties;
    int count = 0, device = 9;

    EXPECT(cudaSuccess, cudaGetDeviceCount(&count));
    IS_TRUE(count >= 1);
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count + 3));
    EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
    EXPECT(cudaSuccess, cudaGetDevice(&device));
    IS_TRUE(device == 0);
    EXPECT(cudaSuccess, cudaGetDeviceProperties(&properties, 0));
    IS_TRUE(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
    IS_TRUE(properties.multiProcessorCount >= 1 && properties.major >= 7);
}

static void names()
{
    IS_TRUE(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    IS_TRUE(strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
}

static void events()
{
    cudaEvent_t never, untimed;
    float time;

    MUST(cudaEventCreate(&never));
    MUST(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    MUST(cudaEventRecord(untimed));
    MUST(cudaDeviceSynchronize());
    EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&time, never, untimed));
    cudaGetLastError();
    MUST(cudaEventDestroy(never));
    MUST(cudaEventDestroy(untimed));
}

// After all of it the device still works.
static void still_alive()
{
    int *word = make(std::vector<int>(1));

    nothing<<<1, 32>>>(word);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    IS_TRUE(take(word, 1)[0] == 1);
    MUST(cudaFree(word));
}

int main()
{
    RUN(last_error);
    RUN(launch_shapes);
    RUN(devices);
    RUN(names);
    RUN(events);
    RUN(still_alive);
    return check_close();
}
