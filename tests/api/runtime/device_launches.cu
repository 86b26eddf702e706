// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels (CUDA dynamic parallelism): children run behind what their stream was
// given before, and the host hears of a parent's end when all of them have ended.
#include "check.cuh"

struct shape {
    char kind;
    double width, height;
};

static __global__ void count(unsigned *counter, unsigned by)
{
    atomicAdd(counter, by);
}

// Each block's first thread launches two blocks, until there are `depth` generations.
static __global__ void grow(unsigned *counter, unsigned depth)
{
    atomicAdd(counter, 1);
    if (depth > 1 && threadIdx.x == 0)
        grow<<<2, blockDim.x + 1>>>(counter, depth - 1);
}

static __global__ void multiply_and_add(unsigned *value, unsigned factor, unsigned addend)
{
    *value = *value * factor + addend;
}

static __global__ void in_order(unsigned *value)
{
    multiply_and_add<<<1, 1>>>(value, 0, 2);
    for (unsigned digit = 3; digit < 7; digit++)
        multiply_and_add<<<1, 1>>>(value, 10, digit);
}

static __global__ void in_streams(unsigned *values)
{
    cudaStream_t streams[2];

    for (unsigned i = 0; i < 2; i++) {
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
        multiply_and_add<<<1, 1, 0, streams[i]>>>(values + i, 0, 7 + i);
        multiply_and_add<<<1, 1, 0, streams[i]>>>(values + i, 10, i);
        cudaStreamDestroy(streams[i]);
    }
}

static __global__ void by_events(unsigned *value)
{
    cudaStream_t first, second;
    cudaEvent_t between;

    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&between, cudaEventDisableTiming);
    multiply_and_add<<<1, 1, 0, first>>>(value, 0, 4);
    cudaEventRecord(between, first);
    cudaStreamWaitEvent(second, between, 0);
    multiply_and_add<<<1, 1, 0, second>>>(value, 10, 2);
    cudaEventDestroy(between);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

static __global__ void keep(const unsigned *counter, unsigned *kept)
{
    *kept = *counter;
}

static __global__ void tail_last(unsigned *counter, unsigned *kept)
{
    keep<<<1, 1, 0, cudaStreamTailLaunch>>>(counter, kept);
    grow<<<4, 3>>>(counter, 3);
    count<<<2, 5, 0, cudaStreamFireAndForget>>>(counter, 100);
}

static __global__ void fill(unsigned *values)
{
    extern __shared__ unsigned room[];

    room[threadIdx.x] = threadIdx.x * threadIdx.x;
    __syncthreads();
    values[blockIdx.y * blockDim.x + threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

static __global__ void describe(shape one, double *area)
{
    *area = one.kind == 'r' ? one.width * one.height : 0;
}

static __global__ void pass_arguments(unsigned *values, double *area)
{
    fill<<<dim3(1, 2, 1), dim3(8, 1, 1), 8 * sizeof(unsigned)>>>(values);
    describe<<<1, 1>>>(shape{'r', 2.5, 4}, area);
}

static __global__ void copy_and_set(unsigned *values)
{
    multiply_and_add<<<1, 1>>>(values, 0, 11);
    cudaMemcpyAsync(values + 1, values, sizeof(*values), cudaMemcpyDeviceToDevice, 0);
    cudaMemsetAsync(values, 0, sizeof(*values), 0);
    multiply_and_add<<<1, 1>>>(values, 1, 2);
}

static __global__ void say(unsigned number)
{
    printf("child %u: %s\n", number, cudaGetErrorString(cudaGetLastError()));
}

static __global__ void say_in_order()
{
    for (unsigned i = 0; i < 3; i++)
        say<<<1, 1>>>(i);
}

static void test_generations()
{
    unsigned *counter = make(std::vector<unsigned>(1));

    grow<<<1, 2>>>(counter, 4);
    MUST(cudaDeviceSynchronize());
    // 2 threads; one block launches 2 of 3; these two 4 of 4; these four 8 of 5.
    IS_TRUE(take(counter, 1)[0] == 2 + 6 + 16 + 40);
    MUST(cudaFree(counter));
}

static void test_order()
{
    unsigned *values = make(std::vector<unsigned>(2));

    in_order<<<1, 1>>>(values);
    IS_TRUE(take(values, 1)[0] == 23456);
    in_streams<<<1, 1>>>(values);
    IS_TRUE(take(values, 2) == std::vector<unsigned>({70, 81}));
    by_events<<<1, 1>>>(values);
    IS_TRUE(take(values, 1)[0] == 42);
    MUST(cudaFree(values));
}

static void test_named_streams()
{
    unsigned *counter = make(std::vector<unsigned>(2));

    tail_last<<<1, 1>>>(counter, counter + 1);
    // 12 threads; four blocks launch 8 of 4; these eight 16 of 5; and 10 threads that add 100.
    IS_TRUE(take(counter, 2) == std::vector<unsigned>({1124, 1124}));
    MUST(cudaFree(counter));
}

static void test_arguments()
{
    unsigned *values = make(std::vector<unsigned>(16));
    double *area = make(std::vector<double>(1));

    pass_arguments<<<1, 1>>>(values, area);
    IS_TRUE(take(values, 16) == std::vector<unsigned>({49, 36, 25, 16, 9, 4, 1, 0, 49, 36, 25, 16,
                                                       9, 4, 1, 0}));
    IS_TRUE(take(area, 1)[0] == 10);
    MUST(cudaFree(values));
    MUST(cudaFree(area));
}

static void test_copies()
{
    unsigned *values = make(std::vector<unsigned>(2));

    copy_and_set<<<1, 1>>>(values);
    IS_TRUE(take(values, 2) == std::vector<unsigned>({2, 11}));
    MUST(cudaFree(values));
}

static void test_prints()
{
    say_in_order<<<1, 1>>>();
    MUST(cudaDeviceSynchronize());
}

// What the host gives the stream behind the parent comes behind all of its children.
static void test_host_order()
{
    unsigned *counter = make(std::vector<unsigned>(2));
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned i = 0; i < 20; i++)
        grow<<<1, 2, 0, stream>>>(counter, 3);
    keep<<<1, 1, 0, stream>>>(counter, counter + 1);
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(take(counter, 2) == std::vector<unsigned>({480, 480}));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(counter));
}

int main()
{
    RUN(test_generations);
    RUN(test_order);
    RUN(test_named_streams);
    RUN(test_arguments);
    RUN(test_copies);
    RUN(test_prints);
    RUN(test_host_order);
    MUST(cudaGetLastError());
    return check_close();
}
