// SPDX-License-Identifier: Apache-2.0
// Variables that host and device share by name: __managed__. The host reads and writes them like
// any of its own while no kernel runs.
#include "check.cuh"

struct Body {
    double mass;
    float position[3];
    short flags;
    char name[10];
};

__device__ __managed__ int counter = 41;
__device__ __managed__ float table[1000] = {1.5f, 2.5f};
__managed__ Body body = {2.0, {1, 2, 3}, 7, "sun"};
__managed__ unsigned char bytes[4096];
__managed__ int *pointer;
__managed__ int large[1 << 20];
__managed__ unsigned long long sums[64];
__device__ int plain = 5;

__global__ void count(int by)
{
    atomicAdd(&counter, by);
}

__global__ void add_to(int *target, int by)
{
    *target += by;
}

__global__ void fill_table(float value)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < 1000)
        table[i] = value + i;
}

__global__ void move_body()
{
    for (float &at : body.position)
        at += (float)body.mass;
    body.flags++;
    body.name[0] = 'S';
}

__global__ void follow_pointer()
{
    *pointer = 99;
    pointer++;
}

__global__ void triple_large()
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < 1u << 20;
         i += gridDim.x * blockDim.x)
        large[i] *= 3;
}

__global__ void every_other(unsigned char value)
{
    bytes[2 * threadIdx.x] = value;
}

__global__ void add_sum(unsigned slot, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sums[slot] += i;
}

static __host__ __device__ unsigned scramble(unsigned value, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        value = value * 1664525u + 1013904223u;
    return value;
}

/* Takes its time. */
__global__ void scramble_sum(unsigned slot, unsigned rounds)
{
    sums[slot] = scramble((unsigned)sums[slot], rounds);
}

__global__ void add_plain(int *out)
{
    *out = plain + counter;
}

static void begin_as_written()
{
    IS_TRUE(counter == 41);
    IS_TRUE(table[0] == 1.5f && table[1] == 2.5f && table[2] == 0 && table[999] == 0);
    IS_TRUE(body.mass == 2.0 && body.position[2] == 3 && body.flags == 7);
    IS_TRUE(strcmp(body.name, "sun") == 0);
    IS_TRUE(pointer == nullptr && bytes[4095] == 0);
}

static void host_and_device_take_turns()
{
    counter = 10;
    for (int round = 0; round < 20; round++) {
        count<<<2, 32>>>(1);
        MUST(cudaDeviceSynchronize());
        IS_TRUE(counter == 10 + round * 65 + 64);
        counter++;
    }
    fill_table<<<8, 128>>>(0.5f);
    move_body<<<1, 1>>>();
    MUST(cudaDeviceSynchronize());
    IS_TRUE(table[0] == 0.5f && table[999] == 999.5f);
    IS_TRUE(body.position[0] == 3 && body.position[2] == 5 && body.flags == 8);
    IS_TRUE(strcmp(body.name, "Sun") == 0);
}

// What a kernel leaves alone the host may have changed, byte by byte.
static void neighbours_stay()
{
    memset(bytes, 1, sizeof(bytes));
    every_other<<<1, 1024>>>(7);
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < sizeof(bytes); i++)
        IS_TRUE(bytes[i] == (i % 2 == 0 && i < 2048 ? 7 : 1));
    for (unsigned i = 1; i < sizeof(bytes); i += 2)
        bytes[i] = 3;
    every_other<<<1, 1024>>>(8);
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < sizeof(bytes); i++)
        IS_TRUE(bytes[i] == (i % 2 == 1 ? 3 : i < 2048 ? 8 : 1));
}

static void addresses_are_the_same()
{
    cudaPointerAttributes attributes;
    void *address;
    size_t size;

    add_to<<<1, 1>>>(&counter, 100);
    MUST(cudaDeviceSynchronize());
    counter -= 100;
    pointer = &counter;
    int before = counter;
    follow_pointer<<<1, 1>>>();
    MUST(cudaDeviceSynchronize());
    IS_TRUE(counter == 99 && pointer == &counter + 1 && before != 99);
    MUST(cudaGetSymbolAddress(&address, counter));
    IS_TRUE(address == &counter);
    MUST(cudaGetSymbolSize(&size, table));
    IS_TRUE(size == sizeof(table));
    MUST(cudaPointerGetAttributes(&attributes, &table[10]));
    IS_TRUE(attributes.type == cudaMemoryTypeManaged);
    IS_TRUE(attributes.devicePointer == &table[10] && attributes.hostPointer == &table[10]);
}

static void copies_and_memsets()
{
    int value = 1234, back = 0, *device;
    std::vector<float> mirror(1000);

    MUST(cudaMalloc(&device, sizeof(int)));
    MUST(cudaMemcpyToSymbol(counter, &value, sizeof(value)));
    IS_TRUE(counter == 1234);
    counter = 77;
    MUST(cudaMemcpyFromSymbol(&back, counter, sizeof(back)));
    IS_TRUE(back == 77);
    MUST(cudaMemcpy(device, &counter, sizeof(int), cudaMemcpyDefault));
    counter = 0;
    MUST(cudaMemcpy(&counter, device, sizeof(int), cudaMemcpyDefault));
    IS_TRUE(counter == 77);
    MUST(cudaMemset(table, 0, sizeof(table)));
    MUST(cudaDeviceSynchronize());
    IS_TRUE(table[0] == 0 && table[999] == 0);
    for (unsigned i = 0; i < 1000; i++)
        table[i] = (float)i;
    MUST(cudaMemcpy(mirror.data(), table, sizeof(table), cudaMemcpyDeviceToHost));
    IS_TRUE(memcmp(mirror.data(), table, sizeof(table)) == 0);
    mirror[500] = -1;
    MUST(cudaMemcpyAsync(table, mirror.data(), sizeof(table), cudaMemcpyHostToDevice));
    MUST(cudaStreamSynchronize(0));
    IS_TRUE(table[500] == -1 && table[499] == 499);
    add_plain<<<1, 1>>>(device);
    MUST(cudaMemcpy(&back, device, sizeof(int), cudaMemcpyDeviceToHost));
    IS_TRUE(back == 82);
    MUST(cudaFree(device));
}

static void large_ones()
{
    bool right = true;

    for (int i = 0; i < 1 << 20; i++)
        large[i] = i;
    for (int round = 0; round < 3; round++) {
        triple_large<<<64, 256>>>();
        MUST(cudaDeviceSynchronize());
        for (int i = 0; i < 1 << 20; i++)
            large[i] += 1;
    }
    for (int i = 0; i < 1 << 20; i++)
        right = right && large[i] == ((i * 3 + 1) * 3 + 1) * 3 + 1;
    IS_TRUE(right);
}

static void in_several_streams()
{
    cudaStream_t streams[4];
    cudaEvent_t done;

    MUST(cudaEventCreate(&done));
    for (unsigned i = 0; i < 4; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], i % 2 ? cudaStreamNonBlocking : 0));
        sums[i] = 1000 * i;
    }
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 4; i++)
            add_sum<<<1, 1, 0, streams[i]>>>(i, 100 * (i + 1));
    for (unsigned i = 0; i < 4; i++)
        MUST(cudaStreamSynchronize(streams[i]));
    for (unsigned i = 0; i < 4; i++)
        IS_TRUE(sums[i] == 1000 * i + 3 * (100ull * (i + 1) * (100 * (i + 1) - 1) / 2));
    sums[1] = 5;
    add_sum<<<1, 1, 0, streams[1]>>>(1, 10);
    MUST(cudaEventRecord(done, streams[1]));
    MUST(cudaEventSynchronize(done));
    IS_TRUE(sums[1] == 50);
    sums[2] = 6;
    add_sum<<<1, 1, 0, streams[2]>>>(2, 10);
    while (cudaStreamQuery(streams[2]) == cudaErrorNotReady)
        ;
    IS_TRUE(sums[2] == 51);
    for (cudaStream_t stream : streams)
        MUST(cudaStreamDestroy(stream));
    MUST(cudaEventDestroy(done));
}

/* What another stream has done comes down, although its end came behind another's. Where host and
 * device have to take turns, the host waits for both. */
static void one_goes_on_behind_another()
{
    const unsigned rounds = 30000000;
    cudaStream_t stream;
    int concurrent;

    MUST(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    sums[0] = 7;
    counter = 1;
    scramble_sum<<<1, 1, 0, stream>>>(0, rounds);
    count<<<1, 1>>>(1);
    MUST(cudaStreamSynchronize(0));
    if (concurrent)
        IS_TRUE(counter == 2);
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(counter == 2 && sums[0] == scramble(7, rounds));
    MUST(cudaStreamDestroy(stream));
}

static void double_counter(void *)
{
    counter *= 2;
}

static void host_functions_take_part()
{
    cudaStream_t stream;

    MUST(cudaStreamCreate(&stream));
    counter = 1;
    count<<<1, 1, 0, stream>>>(1);
    MUST(cudaLaunchHostFunc(stream, double_counter, nullptr));
    count<<<1, 1, 0, stream>>>(10);
    MUST(cudaLaunchHostFunc(stream, double_counter, nullptr));
    count<<<1, 1, 0, stream>>>(100);
    MUST(cudaStreamSynchronize(stream));
    IS_TRUE(counter == 128);
    MUST(cudaStreamDestroy(stream));
}

static void graphs_use_them()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    count<<<1, 32, 0, stream>>>(1);
    count<<<1, 32, 0, stream>>>(2);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        counter = 1000 * round;
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(counter == 1000 * round + 96);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
}

static void graphs_with_host_functions()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    count<<<1, 1, 0, stream>>>(1);
    MUST(cudaLaunchHostFunc(stream, double_counter, nullptr));
    count<<<1, 1, 0, stream>>>(10);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; round++) {
        counter = 100 * round;
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(counter == 400 * round + 36);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
}

static void advice_and_prefetches()
{
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    int read_mostly = 0;

    for (unsigned i = 0; i < 1000; i++)
        table[i] = 1;
    EXPECT(cudaSuccess,
           cudaMemAdvise(large, sizeof(large), cudaMemAdviseSetPreferredLocation, here));
    EXPECT(cudaSuccess, cudaMemAdvise(large, sizeof(large), cudaMemAdviseSetReadMostly, here));
    EXPECT(cudaSuccess, cudaMemRangeGetAttribute(&read_mostly, sizeof(read_mostly),
                                                 cudaMemRangeAttributeReadMostly, large,
                                                 sizeof(large)));
    IS_TRUE(read_mostly == 1);
    EXPECT(cudaSuccess, cudaMemAdvise(large, sizeof(large), cudaMemAdviseUnsetReadMostly, here));
    EXPECT(cudaSuccess, cudaMemPrefetchAsync(table, sizeof(table), here, 0, 0));
    fill_table<<<8, 128>>>(2);
    EXPECT(cudaSuccess, cudaMemPrefetchAsync(table, sizeof(table), host, 0, 0));
    MUST(cudaDeviceSynchronize());
    IS_TRUE(table[0] == 2 && table[999] == 1001);
}

int main()
{
    RUN(begin_as_written);
    RUN(host_and_device_take_turns);
    RUN(neighbours_stay);
    RUN(addresses_are_the_same);
    RUN(copies_and_memsets);
    RUN(large_ones);
    RUN(in_several_streams);
    RUN(one_goes_on_behind_another);
    RUN(host_functions_take_part);
    RUN(graphs_use_them);
    RUN(graphs_with_host_functions);
    RUN(advice_and_prefetches);
    return check_close();
}
