// SPDX-License-Identifier: Apache-2.0
// Surfaces: arrays of every shape that kernels write and read back by bytes, what happens at their
// edges, reductions, and textures on what a surface has written.
#include <algorithm>

#include "check.cuh"

static const int W = 20, H = 7, D = 5;

struct Shape {
    cudaExtent extent;
    unsigned flags;
};

template <typename T> static cudaArray_t make_array(Shape shape)
{
    auto channels = cudaCreateChannelDesc<T>();
    cudaArray_t array;

    MUST(cudaMalloc3DArray(&array, &channels, shape.extent,
                           shape.flags | cudaArraySurfaceLoadStore));
    return array;
}

static cudaSurfaceObject_t surface_on(cudaArray_t array)
{
    cudaResourceDesc resource = {}, same;
    cudaSurfaceObject_t surface;

    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateSurfaceObject(&surface, &resource));
    MUST(cudaGetSurfaceObjectResourceDesc(&same, surface));
    IS_TRUE(same.resType == cudaResourceTypeArray && same.res.array.array == array);
    return surface;
}

// Everything that the array holds, packed.
template <typename T> static std::vector<T> read_array(cudaArray_t array, Shape shape)
{
    const int w = shape.extent.width, h = shape.extent.height ? shape.extent.height : 1;
    const int d = shape.extent.depth ? shape.extent.depth : 1;
    std::vector<T> values((size_t)w * h * d);
    cudaMemcpy3DParms copy = {};

    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(values.data(), w * sizeof(T), w, h);
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyDeviceToHost;
    MUST(cudaMemcpy3D(&copy));
    return values;
}

template <typename T>
static void fill_array(cudaArray_t array, Shape shape, const std::vector<T> &values)
{
    const int w = shape.extent.width, h = shape.extent.height ? shape.extent.height : 1;
    cudaMemcpy3DParms copy = {};

    copy.srcPtr = make_cudaPitchedPtr((void *)values.data(), w * sizeof(T), w, h);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(w, h, shape.extent.depth ? shape.extent.depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
}

// ---- Every shape and every size of an element ----

template <typename T> __host__ __device__ T pattern(int x, int y, int z)
{
    union {
        T value;
        unsigned char bytes[sizeof(T)];
    } u;

    for (unsigned i = 0; i < sizeof(T); i++)
        u.bytes[i] = (unsigned char)(x * 3 + y * 31 + z * 101 + i * 59);
    return u.value;
}

enum Geometry { LINE, PLANE, BOX, LINES, PLANES, CUBE, CUBES };

template <typename T> __device__ T load(int geometry, cudaSurfaceObject_t s, int x, int y, int z)
{
    const int at = x * sizeof(T);

    switch (geometry) {
    case LINE:
        return surf1Dread<T>(s, at);
    case PLANE:
        return surf2Dread<T>(s, at, y);
    case BOX:
        return surf3Dread<T>(s, at, y, z);
    case LINES:
        return surf1DLayeredread<T>(s, at, z);
    case PLANES:
        return surf2DLayeredread<T>(s, at, y, z);
    case CUBE:
        return surfCubemapread<T>(s, at, y, z);
    default:
        return surfCubemapLayeredread<T>(s, at, y, z);
    }
}

template <typename T>
__device__ void store(int geometry, T value, cudaSurfaceObject_t s, int x, int y, int z)
{
    const int at = x * sizeof(T);

    switch (geometry) {
    case LINE:
        return surf1Dwrite(value, s, at);
    case PLANE:
        return surf2Dwrite(value, s, at, y);
    case BOX:
        return surf3Dwrite(value, s, at, y, z);
    case LINES:
        return surf1DLayeredwrite(value, s, at, z);
    case PLANES:
        return surf2DLayeredwrite(value, s, at, y, z);
    case CUBE:
        return surfCubemapwrite(value, s, at, y, z);
    default:
        return surfCubemapLayeredwrite(value, s, at, y, z);
    }
}

template <typename T> __global__ void write_all(int geometry, cudaSurfaceObject_t s)
{
    const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;

    store(geometry, pattern<T>(x, y, z), s, x, y, z);
}

// One off in each byte of what was there, in place.
template <typename T> __global__ void flip_all(int geometry, cudaSurfaceObject_t s)
{
    const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    union {
        T value;
        unsigned char bytes[sizeof(T)];
    } u;

    u.value = load<T>(geometry, s, x, y, z);
    for (unsigned i = 0; i < sizeof(T); i++)
        u.bytes[i] ^= 0xff;
    store(geometry, u.value, s, x, y, z);
}

template <typename T> static void whole(int geometry, Shape shape)
{
    const int w = shape.extent.width, h = shape.extent.height ? shape.extent.height : 1;
    const int d = shape.extent.depth ? shape.extent.depth : 1;
    cudaArray_t array = make_array<T>(shape);
    cudaSurfaceObject_t surface = surface_on(array);

    for (int flipped = 0; flipped < 2; flipped++) {
        bool same = true;
        if (flipped)
            flip_all<T><<<dim3(h, d), w>>>(geometry, surface);
        else
            write_all<T><<<dim3(h, d), w>>>(geometry, surface);
        MUST(cudaDeviceSynchronize());
        auto values = read_array<T>(array, shape);
        for (int i = 0; i < w * h * d; i++) {
            T wanted = pattern<T>(i % w, i / w % h, i / w / h);
            unsigned char *bytes = (unsigned char *)&wanted;
            for (unsigned k = 0; flipped && k < sizeof(T); k++)
                bytes[k] ^= 0xff;
            same &= memcmp(&wanted, &values[i], sizeof(T)) == 0;
        }
        IS_TRUE(same);
    }
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
}

template <typename T> static void all_shapes()
{
    whole<T>(LINE, {make_cudaExtent(W, 0, 0), 0});
    whole<T>(PLANE, {make_cudaExtent(W, H, 0), 0});
    whole<T>(BOX, {make_cudaExtent(W, H, D), 0});
    whole<T>(LINES, {make_cudaExtent(W, 0, D), cudaArrayLayered});
    whole<T>(PLANES, {make_cudaExtent(W, H, D), cudaArrayLayered});
    whole<T>(CUBE, {make_cudaExtent(H, H, 6), cudaArrayCubemap});
    whole<T>(CUBES, {make_cudaExtent(H, H, 12), cudaArrayCubemap | cudaArrayLayered});
}

static void elements()
{
    all_shapes<unsigned char>();
    all_shapes<short>();
    all_shapes<float>();
    all_shapes<int2>();
    all_shapes<float4>();
    whole<uchar4>(PLANE, {make_cudaExtent(W, H, 0), 0});
    whole<char2>(PLANE, {make_cudaExtent(W, H, 0), 0});
    whole<ushort4>(PLANE, {make_cudaExtent(W, H, 0), 0});
    whole<short2>(BOX, {make_cudaExtent(W, H, D), 0});
    whole<uint4>(PLANES, {make_cudaExtent(W, H, D), cudaArrayLayered});
}

// ---- Edges ----

template <cudaSurfaceBoundaryMode mode> __global__ void look_around(cudaSurfaceObject_t s, int *out)
{
    const int x = (int)threadIdx.x - 3, y = (int)blockIdx.x - 3;

    out[blockIdx.x * blockDim.x + threadIdx.x] = surf2Dread<int>(s, x * 4, y, mode);
}

static int inside(int i, int size)
{
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

static void reads_outside()
{
    const Shape shape = {make_cudaExtent(W, H, 0), 0};
    const int w = W + 6, h = H + 6;
    cudaArray_t array = make_array<int>(shape);
    cudaSurfaceObject_t surface = surface_on(array);
    std::vector<int> values(W * H);
    int *out;

    for (int i = 0; i < W * H; i++)
        values[i] = i + 1;
    fill_array(array, shape, values);
    MUST(cudaMalloc(&out, w * h * sizeof(int)));
    for (int clamp = 0; clamp < 2; clamp++) {
        if (clamp)
            look_around<cudaBoundaryModeClamp><<<h, w>>>(surface, out);
        else
            look_around<cudaBoundaryModeZero><<<h, w>>>(surface, out);
        auto found = take(out, w * h);
        for (int i = 0; i < w * h; i++) {
            const int x = i % w - 3, y = i / w - 3;
            const bool is_inside = x >= 0 && x < W && y >= 0 && y < H;
            const int nearest = values[inside(y, H) * W + inside(x, W)];
            IS_TRUE(found[i] == (clamp || is_inside ? nearest : 0));
        }
    }
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

__global__ void write_around(cudaSurfaceObject_t s)
{
    const int x = (int)threadIdx.x - 3, y = (int)blockIdx.x - 3;

    surf2Dwrite(y * 100 + x, s, x * 4, y, cudaBoundaryModeZero);
}

__global__ void write_corners(cudaSurfaceObject_t s)
{
    const bool right = threadIdx.x & 1, down = threadIdx.x & 2;

    surf2Dwrite(-1 - (int)threadIdx.x, s, right ? 4000 : -4, down ? 4000 : -1,
                cudaBoundaryModeClamp);
}

static void writes_outside()
{
    const Shape shape = {make_cudaExtent(W, H, 0), 0};
    cudaArray_t array = make_array<int>(shape);
    cudaSurfaceObject_t surface = surface_on(array);

    write_around<<<H + 6, W + 6>>>(surface);
    MUST(cudaDeviceSynchronize());
    auto found = read_array<int>(array, shape);
    for (int i = 0; i < W * H; i++)
        IS_TRUE(found[i] == i / W * 100 + i % W);
    write_corners<<<1, 4>>>(surface);
    MUST(cudaDeviceSynchronize());
    found = read_array<int>(array, shape);
    IS_TRUE(found[0] == -1 && found[W - 1] == -2);
    IS_TRUE(found[(H - 1) * W] == -3 && found[H * W - 1] == -4);
    IS_TRUE(found[1] == 1 && found[W] == 100);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
}

// ---- With textures, and reductions ----

__global__ void sample(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 1.f, 2.5f);
}

// A texture between two elements that a surface wrote.
static void textures_see_writes()
{
    const Shape shape = {make_cudaExtent(W, H, 0), 0};
    cudaArray_t array = make_array<float>(shape);
    cudaSurfaceObject_t surface = surface_on(array);
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    std::vector<float> values(W * H);
    float *out;

    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    description.filterMode = cudaFilterModeLinear;
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    MUST(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    MUST(cudaMalloc(&out, W * sizeof(float)));
    write_all<float><<<dim3(H, 1), W>>>(PLANE, surface);
    for (int i = 0; i < W * H; i++)
        values[i] = (float)(i * i % 61);
    fill_array(array, shape, values);
    sample<<<1, W - 1>>>(texture, out);
    auto found = take(out, W - 1);
    for (int i = 0; i < W - 1; i++)
        IS_TRUE(found[i] == (values[2 * W + i] + values[2 * W + i + 1]) / 2);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

__global__ void reduce(cudaSurfaceObject_t s, int y)
{
    const int x = threadIdx.x % W * 4, value = threadIdx.x * 7 % 64;

    switch (y) {
    case 0:
        asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),
                     "r"(value));
        break;
    case 1:
        asm volatile("sured.b.max.2d.s32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),
                     "r"(value));
        break;
    case 2:
        asm volatile("sured.b.min.2d.s32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),
                     "r"(-value));
        break;
    case 3:
        asm volatile("sured.b.or.2d.b32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),
                     "r"(value));
        break;
    default:
        asm volatile("sured.b.and.2d.b32.zero [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(y),
                     "r"(value | 1));
    }
}

static void reductions()
{
    const Shape shape = {make_cudaExtent(W, H, 0), 0};
    const int threads = 256;
    cudaArray_t array = make_array<int>(shape);
    cudaSurfaceObject_t surface = surface_on(array);
    std::vector<int> values(W * H, 0);

    for (int x = 0; x < W; x++)
        values[4 * W + x] = 0x7f;
    fill_array(array, shape, values);
    for (int y = 0; y < 5; y++)
        reduce<<<1, threads>>>(surface, y);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < threads; i++) {
        const int x = i % W, value = i * 7 % 64;
        values[x] += value;
        values[W + x] = std::max(values[W + x], value);
        values[2 * W + x] = std::min(values[2 * W + x], -value);
        values[3 * W + x] |= value;
        values[4 * W + x] &= value | 1;
    }
    IS_TRUE(read_array<int>(array, shape) == values);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
}

__global__ void ask(cudaSurfaceObject_t s, int *out)
{
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(s));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(s));
}

static void queries()
{
    cudaArray_t array = make_array<int>({make_cudaExtent(W, H, 0), 0});
    cudaSurfaceObject_t surface = surface_on(array);
    int *out;

    MUST(cudaMalloc(&out, 2 * sizeof(int)));
    ask<<<1, 1>>>(surface, out);
    auto found = take(out, 2);
    IS_TRUE(found[0] == W && found[1] == H);
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(out));
}

static void refusals()
{
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t surface;
    void *memory;

    MUST(cudaMalloc(&memory, 1024));
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 1024;
    IS_TRUE(cudaCreateSurfaceObject(&surface, &resource) != cudaSuccess);
    cudaGetLastError();
    MUST(cudaFree(memory));
}

int main()
{
    RUN(elements);
    RUN(reads_outside);
    RUN(writes_outside);
    RUN(textures_see_writes);
    RUN(reductions);
    RUN(queries);
    RUN(refusals);
    return check_close();
}
