// SPDX-License-Identifier: Apache-2.0
// A program of two units (the other one is separate/parts.cu), compiled separately and linked for
// the device (-rdc=true): functions and variables of one are used in the other.
#include "separate.cuh"

static __device__ int hidden = 1; // the other unit has one of this name

__global__ void call_functions(int *out)
{
    out[threadIdx.x] = twice(threadIdx.x) + table[threadIdx.x % 4];
}

__global__ void call_pointers(int *out)
{
    for (unsigned i = 0; i < 2; i++)
        out[i] = steps[i](10);
}

__global__ void measure(float *out)
{
    out[threadIdx.x] = area(shapes[threadIdx.x]);
}

__global__ void add_to_counter(int by)
{
    atomicAdd(&counter, by);
}

__global__ void count_here(int by)
{
    hidden += by;
}

__global__ void talk()
{
    say(42);
    printf("and of this one: %d\n", 43);
}

static void test_functions()
{
    int *out = make(std::vector<int>(8));

    call_functions<<<1, 8>>>(out);
    MUST(cudaGetLastError());
    IS_TRUE(take(out, 8) == std::vector<int>({1, 12, 104, 1006, 9, 20, 112, 1014}));
    call_pointers<<<1, 1>>>(out);
    IS_TRUE(take(out, 2) == std::vector<int>({20, 11}));
    MUST(cudaFree(out));
}

static void test_variable()
{
    const int changed[4] = {5, 6, 7, 8};
    int *out = make(std::vector<int>(4)), before[4], back[4];

    MUST(cudaMemcpyFromSymbol(before, table, sizeof(before)));
    IS_TRUE(before[0] == 1 && before[3] == 1000);
    MUST(cudaMemcpyToSymbol(table, changed, sizeof(changed)));
    call_functions<<<1, 4>>>(out);
    IS_TRUE(take(out, 4) == std::vector<int>({5, 8, 11, 14}));
    MUST(cudaMemcpyFromSymbol(back, table, sizeof(back)));
    IS_TRUE(back[0] == 5 && back[3] == 8);
    MUST(cudaFree(out));
}

static void test_constant()
{
    const Shape wide = {100, 2};
    float *out = make(std::vector<float>(3));

    MUST(cudaMemcpyToSymbol(shapes, &wide, sizeof(wide), sizeof(wide)));
    measure<<<1, 3>>>(out);
    IS_TRUE(take(out, 3) == std::vector<float>({6, 200, 0.5f}));
    MUST(cudaFree(out));
}

static void test_managed()
{
    IS_TRUE(counter == 40);
    counter++;
    add_to_counter<<<1, 32>>>(2);
    MUST(cudaDeviceSynchronize());
    IS_TRUE(counter == 105);
}

static void test_hidden()
{
    int here = 0;

    count_here<<<1, 1>>>(2);
    MUST(cudaMemcpyFromSymbol(&here, hidden, sizeof(here)));
    IS_TRUE(here == 3);
    IS_TRUE(count_elsewhere(4) == 104);
}

static void test_printing()
{
    talk<<<1, 1>>>();
    MUST(cudaDeviceSynchronize());
}

int main()
{
    RUN(test_functions);
    RUN(test_variable);
    RUN(test_constant);
    RUN(test_managed);
    RUN(test_hidden);
    RUN(test_printing);
    return check_close();
}
