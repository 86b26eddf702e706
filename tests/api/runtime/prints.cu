// SPDX-License-Identifier: Apache-2.0
// printf from a kernel, in the order in which one thread says it.
#include "check.cuh"

__global__ void say(int n)
{
    for (int i = 0; i < n; i++)
        printf("%d: %u %lld %5.2f %s %%\n", i, 3000000000u, -5000000000ll, i / 4.0, "text");
}

int main()
{
    puts("before");
    fflush(stdout);
    say<<<1, 1>>>(3);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    puts("after");
    return check_close();
}
