// SPDX-License-Identifier: Apache-2.0
// Textures on arrays of two and three dimensions and on linear memory, with copies to and from
// arrays. What is expected is computed here, by the formulas of CUDA's guide.
#include "check.cuh"
__global__ void look(cudaTextureObject_t t, float *o, float step, float from, float y)
{
    int i = threadIdx.x;
    o[i] = tex2D<float>(t, from + i * step, y);
}
__global__ void fetch(cudaTextureObject_t t, int4 *o)
{
    int i = threadIdx.x;
    o[i] = tex1Dfetch<int4>(t, i - 2);
}
__global__ void bytes(cudaTextureObject_t t, float4 *o)
{
    int i = threadIdx.x;
    o[i] = tex3D<float4>(t, i + .5f, 1.5f, 2.5f);
}
__global__ void delay(long long clocks)
{
    long long start = clock64();

    while (clock64() - start < clocks)
        ;
}
__global__ void write_surface(cudaSurfaceObject_t s)
{
    surf2Dwrite(100.f + threadIdx.x, s, threadIdx.x * sizeof(float), 0);
}
static void plane()
{
    const int W = 37, H = 9;
    std::vector<float> p(W * H), back(W * H);
    for (int i = 0; i < W * H; i++)
        p[i] = (i * 7) % 31;
    cudaArray_t a;
    auto d = cudaCreateChannelDesc<float>();
    MUST(cudaMallocArray(&a, &d, W, H));
    MUST(cudaMemcpy2DToArray(a, 0, 0, p.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy2DFromArray(back.data(), W * 4, a, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
    IS_TRUE(p == back);
    EXPECT(cudaErrorInvalidValue,
           cudaMemcpy2DToArray(a, 4, 0, p.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaTextureDesc t = {};
    t.filterMode = cudaFilterModeLinear;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t o;
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    float *out;
    MUST(cudaMalloc(&out, 64 * 4));
    look<<<1, 64>>>(o, out, .5f, 1.f, 2.5f);
    auto v = take(out, 64);
    for (int i = 0; i < 64; i++) {
        float x = 1 + i * .5f - .5f;
        int f = (int)floorf(x);
        float w = x - f;
        auto g = [&](int k) { return p[2 * W + (k < 0 ? 0 : k >= W ? W - 1 : k)]; };
        IS_TRUE(fabsf(v[i] - ((1 - w) * g(f) + w * g(f + 1))) < 1e-3f);
    }
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFreeArray(a));
    MUST(cudaFree(out));
}
static void linear()
{
    std::vector<int4> p(16);
    for (int i = 0; i < 16; i++)
        p[i] = make_int4(i, i * 2, -i, 7);
    int4 *m = make(p);
    int4 *out;
    MUST(cudaMalloc(&out, 32 * 16));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = m;
    r.res.linear.desc = cudaCreateChannelDesc<int4>();
    r.res.linear.sizeInBytes = 256;
    cudaTextureDesc t = {};
    t.readMode = cudaReadModeElementType;
    cudaTextureObject_t o;
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    fetch<<<1, 20>>>(o, out);
    auto v = take(out, 20);
    for (int i = 0; i < 20; i++) {
        int k = i - 2;
        bool in = k >= 0 && k < 16;
        IS_TRUE(v[i].x == (in ? k : 0) && v[i].z == (in ? -k : 0) && v[i].w == (in ? 7 : 0));
    }
    MUST(cudaDestroyTextureObject(o));
    /* As the sample convolutionFFT2D does it: a bit more than there is, but no thread reads that. */
    r.res.linear.sizeInBytes = 8192;
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    fetch<<<1, 18>>>(o, out);
    v = take(out, 18);
    for (int i = 0; i < 18; i++)
        IS_TRUE(v[i].x == (i < 2 ? 0 : i - 2));
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFree(m));
}
static void box()
{
    const int W = 5, H = 3, D = 4;
    std::vector<uchar4> p(W * H * D);
    for (int i = 0; i < W * H * D; i++)
        p[i] = make_uchar4(i, 255 - i, i * 4, 51);
    cudaArray_t a;
    auto d = cudaCreateChannelDesc<uchar4>();
    MUST(cudaMalloc3DArray(&a, &d, make_cudaExtent(W, H, D)));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(p.data(), W * 4, W, H);
    c.dstArray = a;
    c.extent = make_cudaExtent(W, H, D);
    c.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&c));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaTextureDesc t = {};
    t.readMode = cudaReadModeNormalizedFloat;
    cudaTextureObject_t o;
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    float4 *out;
    MUST(cudaMalloc(&out, 5 * 16));
    bytes<<<1, 5>>>(o, out);
    auto v = take(out, 5);
    for (int x = 0; x < 5; x++) {
        auto q = p[(2 * H + 1) * W + x];
        IS_TRUE(v[x].x == q.x / 255.f && v[x].y == q.y / 255.f && fabsf(v[x].w - .2f) < 1e-6f);
    }
    cudaExtent e;
    unsigned f;
    cudaChannelFormatDesc g;
    MUST(cudaArrayGetInfo(&g, &e, &f, a));
    IS_TRUE(e.width == 5 && e.depth == 4 && g.x == 8);
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFreeArray(a));
}
// As NVIDIA's samples do: work that was queued before still reads what is destroyed behind it.
static void destroyed_while_queued()
{
    const int W = 32;
    std::vector<float> p(W), back(W);
    for (int i = 0; i < W; i++)
        p[i] = i + 1;
    cudaArray_t a;
    auto d = cudaCreateChannelDesc<float>();
    MUST(cudaMallocArray(&a, &d, W, 1, cudaArraySurfaceLoadStore));
    MUST(cudaMemcpy2DToArray(a, 0, 0, p.data(), W * 4, W * 4, 1, cudaMemcpyHostToDevice));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    cudaTextureDesc t = {};
    cudaTextureObject_t o, second;
    cudaSurfaceObject_t s;
    float *out;
    MUST(cudaMalloc(&out, W * 4));
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    delay<<<1, 1>>>(20000000);
    look<<<1, W>>>(o, out, 1.f, 0.f, 0.f);
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaCreateTextureObject(&second, &r, &t, NULL));
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    IS_TRUE(take(out, W) == p);
    MUST(cudaCreateSurfaceObject(&s, &r));
    delay<<<1, 1>>>(20000000);
    write_surface<<<1, W>>>(s);
    MUST(cudaDestroySurfaceObject(s));
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    MUST(cudaMemcpy2DFromArray(back.data(), W * 4, a, 0, 0, W * 4, 1, cudaMemcpyDeviceToHost));
    IS_TRUE(back[0] == 100 && back[W - 1] == 100 + W - 1);
    delay<<<1, 1>>>(20000000);
    look<<<1, W>>>(second, out, 1.f, 0.f, 0.f);
    MUST(cudaDestroyTextureObject(second));
    MUST(cudaFreeArray(a));
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    IS_TRUE(take(out, W) == back);
    MUST(cudaFree(out));
}
int main()
{
    RUN(plane);
    RUN(linear);
    RUN(box);
    RUN(destroyed_while_queued);
    return check_close();
}
