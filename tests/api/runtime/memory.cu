// SPDX-License-Identifier: Apache-2.0
// Memory through the runtime: every kind of copy and memset, pitched and in three dimensions, and
// variables of the device by name.
#include "check.cuh"

__device__ int global[8] = {1, 2, 3};
__constant__ float constant[4];

__global__ void use_symbols(float *out)
{
    out[threadIdx.x] = constant[threadIdx.x] * global[threadIdx.x];
}

__global__ void count_up(int *data, size_t n)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        data[i] += (int)i;
}

static std::vector<char> pattern(size_t size)
{
    std::vector<char> bytes(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    return bytes;
}

static void directions()
{
    std::vector<char> in = pattern(300001), out(in.size());
    char *a = make(in), *b;

    EXPECT(cudaSuccess, cudaMalloc(&b, in.size()));
    EXPECT(cudaSuccess, cudaMemcpy(b, a, in.size(), cudaMemcpyDeviceToDevice));
    EXPECT(cudaSuccess, cudaMemcpy(out.data(), b, in.size(), cudaMemcpyDeviceToHost));
    IS_TRUE(in == out);
    EXPECT(cudaSuccess, cudaMemcpy(b + 7, in.data() + 1, 1000, cudaMemcpyDefault));
    EXPECT(cudaSuccess, cudaMemcpy(out.data(), b + 7, 1000, cudaMemcpyDefault));
    IS_TRUE(memcmp(out.data(), in.data() + 1, 1000) == 0);
    EXPECT(cudaSuccess, cudaMemcpy(out.data(), in.data(), in.size(), cudaMemcpyHostToHost));
    IS_TRUE(in == out);
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(b, a, 16, (cudaMemcpyKind)17));
    cudaGetLastError();
    MUST(cudaFree(a));
    MUST(cudaFree(b));
}

static void memsets()
{
    char *a;
    std::vector<char> expected(4096, 7);

    MUST(cudaMalloc(&a, 4096));
    EXPECT(cudaSuccess, cudaMemset(a, 7, 4096));
    EXPECT(cudaSuccess, cudaMemset2D(a + 100, 256, 9, 33, 5));
    for (int row = 0; row < 5; row++)
        memset(&expected[100 + 256 * row], 9, 33);
    EXPECT(cudaSuccess, cudaMemsetAsync(a + 4000, 1, 96, cudaStreamPerThread));
    EXPECT(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
    memset(&expected[4000], 1, 96);
    IS_TRUE(take(a, 4096) == expected);
    MUST(cudaFree(a));
}

static void pitched()
{
    enum { WIDTH = 130, HEIGHT = 21 };
    std::vector<char> in = pattern(WIDTH * HEIGHT), out(WIDTH * HEIGHT);
    char *a;
    size_t pitch;

    EXPECT(cudaSuccess, cudaMallocPitch(&a, &pitch, WIDTH, HEIGHT));
    IS_TRUE(pitch >= WIDTH);
    EXPECT(cudaSuccess,
           cudaMemcpy2D(a, pitch, in.data(), WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
    EXPECT(cudaSuccess,
           cudaMemcpy2D(out.data(), WIDTH, a, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
    IS_TRUE(in == out);
    MUST(cudaFree(a));
}

static void three_dimensions()
{
    cudaExtent extent = make_cudaExtent(20, 7, 5);
    std::vector<char> in = pattern(20 * 7 * 5), out(in.size());
    cudaPitchedPtr a;
    cudaMemcpy3DParms copy = {};

    EXPECT(cudaSuccess, cudaMalloc3D(&a, extent));
    copy.srcPtr = make_cudaPitchedPtr(in.data(), 20, 20, 7);
    copy.dstPtr = a;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    EXPECT(cudaSuccess, cudaMemcpy3D(&copy));
    copy.srcPtr = a;
    copy.dstPtr = make_cudaPitchedPtr(out.data(), 20, 20, 7);
    copy.kind = cudaMemcpyDeviceToHost;
    EXPECT(cudaSuccess, cudaMemcpy3D(&copy));
    IS_TRUE(in == out);
    MUST(cudaFree(a.ptr));
}

static void symbols()
{
    const float factors[4] = {2, 3, 4, 5};
    int numbers[8];
    float *out = make(std::vector<float>(4));
    void *address = nullptr;
    size_t size = 0;

    EXPECT(cudaSuccess, cudaMemcpyToSymbol(constant, factors, sizeof(factors)));
    EXPECT(cudaSuccess, cudaMemcpyFromSymbol(numbers, global, sizeof(numbers)));
    IS_TRUE(numbers[0] == 1 && numbers[2] == 3 && numbers[3] == 0 && numbers[7] == 0);
    numbers[3] = 10;
    EXPECT(cudaSuccess, cudaMemcpyToSymbol(global, &numbers[3], sizeof(int), 3 * sizeof(int)));
    use_symbols<<<1, 4>>>(out);
    IS_TRUE(take(out, 4) == std::vector<float>({2, 6, 12, 50}));
    EXPECT(cudaSuccess, cudaGetSymbolSize(&size, global));
    IS_TRUE(size == sizeof(numbers));
    EXPECT(cudaSuccess, cudaGetSymbolAddress(&address, global));
    IS_TRUE(take((int *)address, 4)[3] == 10);
    MUST(cudaFree(out));
}

static void pinned()
{
    int *host, *device;
    unsigned flags;

    EXPECT(cudaSuccess, cudaHostAlloc(&host, 4000, cudaHostAllocMapped | cudaHostAllocPortable));
    memset(host, 0, 4000);
    EXPECT(cudaSuccess, cudaHostGetDevicePointer(&device, host, 0));
    EXPECT(cudaSuccess, cudaHostGetFlags(&flags, host));
    IS_TRUE(flags & cudaHostAllocMapped);
    count_up<<<1, 64>>>(device, 1000);
    count_up<<<1, 64>>>(device, 1000);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    IS_TRUE(host[0] == 0 && host[1] == 2 && host[999] == 1998);
    EXPECT(cudaSuccess, cudaFreeHost(host));
}

/* Memory of the program's own, with whatever else lies on its pages. */
static void registered()
{
    int *host = (int *)malloc(100000 * sizeof(int)), *device;

    memset(host, 0, 100000 * sizeof(int));
    EXPECT(cudaSuccess, cudaHostRegister(host, 100000 * sizeof(int), cudaHostRegisterMapped));
    EXPECT(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(host, 4, cudaHostRegisterMapped));
    EXPECT(cudaErrorHostMemoryAlreadyRegistered, cudaGetLastError());
    EXPECT(cudaSuccess, cudaHostGetDevicePointer(&device, host, 0));
    count_up<<<1, 64>>>(device, 1000);
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    IS_TRUE(host[1] == 1 && host[999] == 999 && host[1000] == 0);
    EXPECT(cudaSuccess, cudaHostUnregister(host));
    EXPECT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host));
    EXPECT(cudaErrorHostMemoryNotRegistered, cudaGetLastError());
    IS_TRUE(host[1] == 1 && host[999] == 999 && host[1000] == 0);
    free(host);
}

static void refusals()
{
    char *a;
    size_t available, total;

    EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&a, (size_t)1 << 46));
    EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
    EXPECT(cudaSuccess, cudaGetLastError());
    EXPECT(cudaSuccess, cudaMalloc(&a, 100));
    EXPECT(cudaSuccess, cudaFree(a));
    EXPECT(cudaErrorInvalidValue, cudaFree(a));
    EXPECT(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT(cudaSuccess, cudaFree(nullptr));
    EXPECT(cudaSuccess, cudaMemGetInfo(&available, &total));
    IS_TRUE(available <= total);
}

static void pointer_attributes()
{
    cudaPointerAttributes attributes;
    int *device = make(std::vector<int>(10)), *pinned, stack = 0;

    EXPECT(cudaSuccess, cudaPointerGetAttributes(&attributes, device + 3));
    IS_TRUE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    IS_TRUE(attributes.devicePointer == device + 3 && attributes.hostPointer == nullptr);
    MUST(cudaMallocHost(&pinned, 100));
    EXPECT(cudaSuccess, cudaPointerGetAttributes(&attributes, pinned));
    IS_TRUE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    EXPECT(cudaSuccess, cudaPointerGetAttributes(&attributes, &stack));
    IS_TRUE(attributes.type == cudaMemoryTypeUnregistered);
    MUST(cudaFree(device));
    MUST(cudaFreeHost(pinned));
}

int main()
{
    RUN(directions);
    RUN(memsets);
    RUN(pitched);
    RUN(three_dimensions);
    RUN(symbols);
    RUN(pinned);
    RUN(registered);
    RUN(refusals);
    RUN(pointer_attributes);
    return check_close();
}
