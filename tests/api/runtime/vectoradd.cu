// SPDX-License-Identifier: Apache-2.0
// Sums of vectors, of several types and sizes.
#include "check.cuh"

template <typename T> __global__ void add(const T *a, const T *b, T *sum, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        sum[i] = a[i] + b[i];
}

template <typename T> static void check(size_t n)
{
    std::vector<T> a(n), b(n);
    uint32_t seed = 1;
    bool right = true;

    for (size_t i = 0; i < n; i++) {
        a[i] = (T)(next_random(seed) % 1000);
        b[i] = (T)(next_random(seed) % 1000) / 4;
    }
    T *device_a = make(a), *device_b = make(b), *device_sum = make(a);
    add<<<(n + 255) / 256, 256>>>(device_a, device_b, device_sum, n);
    EXPECT(cudaSuccess, cudaGetLastError());
    std::vector<T> sum = take(device_sum, n);
    for (size_t i = 0; i < n; i++)
        right &= sum[i] == (T)(a[i] + b[i]);
    IS_TRUE(right);
    MUST(cudaFree(device_a));
    MUST(cudaFree(device_b));
    MUST(cudaFree(device_sum));
}

template <typename T> static void all_sizes()
{
    for (size_t n : {1, 31, 256, 1000, 50000})
        check<T>(n);
}

int main()
{
    RUN(all_sizes<float>);
    RUN(all_sizes<double>);
    RUN(all_sizes<int>);
    RUN(all_sizes<unsigned char>);
    RUN(all_sizes<long long>);
    return check_close();
}
