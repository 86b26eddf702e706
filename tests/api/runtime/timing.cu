// SPDX-License-Identifier: Apache-2.0
// Work timed by events: times are positive and add up. None is printed.
#include "check.cuh"

__global__ void spin(unsigned *out, unsigned turns)
{
    unsigned x = threadIdx.x;

    for (unsigned i = 0; i < turns; i++)
        x = x * 1664525 + 1013904223;
    out[threadIdx.x] = x;
}

static void longer_work_takes_longer()
{
    unsigned *out = make(std::vector<unsigned>(32));
    cudaEvent_t events[3];
    float little = 0, much = 0;

    for (cudaEvent_t &event : events)
        MUST(cudaEventCreate(&event));
    spin<<<1, 32>>>(out, 1);
    MUST(cudaEventRecord(events[0]));
    spin<<<1, 32>>>(out, 1000);
    MUST(cudaEventRecord(events[1]));
    spin<<<1, 32>>>(out, 200000);
    MUST(cudaEventRecord(events[2]));
    EXPECT(cudaSuccess, cudaEventSynchronize(events[2]));
    EXPECT(cudaSuccess, cudaEventElapsedTime(&little, events[0], events[1]));
    EXPECT(cudaSuccess, cudaEventElapsedTime(&much, events[1], events[2]));
    IS_TRUE(little > 0 && much > 0);
    for (cudaEvent_t event : events)
        MUST(cudaEventDestroy(event));
    MUST(cudaFree(out));
}

int main()
{
    RUN(longer_work_takes_longer);
    return check_close();
}
