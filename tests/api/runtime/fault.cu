// SPDX-License-Identifier: Apache-2.0
// A store to an address that is not mapped: the error shows at the next wait, and stays.
#include "check.cuh"

__global__ void store(int *address)
{
    *address = 1;
}

int main()
{
    int *word = make(std::vector<int>(1));

    store<<<1, 1>>>((int *)0x10);
    EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT(cudaErrorIllegalAddress, cudaGetLastError());
    EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    EXPECT(cudaErrorIllegalAddress, cudaMemset(word, 0, 4));
    store<<<1, 1>>>(word);
    EXPECT(cudaErrorIllegalAddress, cudaGetLastError());
    puts("the error stays");
    return check_close();
}
