// SPDX-License-Identifier: Apache-2.0
// Arrays larger than one piece of a copy, copies between all kinds of memory, and textures on
// layers, on a cube, on rows of memory and with a level.
#include "check.cuh"
__global__ void from_layers(cudaTextureObject_t t, float *o)
{
    o[threadIdx.x] = tex2DLayered<float>(t, 1.5f, 0.5f, threadIdx.x);
}
__global__ void from_cube(cudaTextureObject_t t, float *o)
{
    const float way[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    const float *w = way[threadIdx.x];
    o[threadIdx.x] = texCubemap<float>(t, w[0], w[1], w[2]);
}
__global__ void from_rows(cudaTextureObject_t t, float *o, float level)
{
    o[threadIdx.x] = level < 0 ? tex2D<float>(t, threadIdx.x + .5f, 2.5f)
                               : tex2DLod<float>(t, threadIdx.x + .5f, 2.5f, level);
}
static cudaTextureObject_t object(const cudaResourceDesc &r, bool normalized = false)
{
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeClamp;
    t.normalizedCoords = normalized;
    MUST(cudaCreateTextureObject(&o, &r, &t, NULL));
    return o;
}
static cudaResourceDesc on(cudaArray_t a)
{
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
}
static void fill(cudaArray_t a, const std::vector<float> &p, int w, int h, int d)
{
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr((void *)p.data(), w * 4, w, h);
    c.dstArray = a;
    c.extent = make_cudaExtent(w, h, d);
    c.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&c));
}
static std::vector<float> numbers(size_t n)
{
    std::vector<float> p(n);
    uint32_t state = 7;
    for (auto &v : p)
        v = (float)next_random(state);
    return p;
}
// Several pieces in each slice, and the last one smaller.
static void large()
{
    const int W = 1000, H = 777, D = 3;
    auto p = numbers((size_t)W * H * D), back = p;
    auto d = cudaCreateChannelDesc<float>();
    cudaArray_t a;
    MUST(cudaMalloc3DArray(&a, &d, make_cudaExtent(W, H, D)));
    fill(a, p, W, H, D);
    std::fill(back.begin(), back.end(), 0.f);
    cudaMemcpy3DParms c = {};
    c.srcArray = a;
    c.dstPtr = make_cudaPitchedPtr(back.data(), W * 4, W, H);
    c.extent = make_cudaExtent(W, H, D);
    c.kind = cudaMemcpyDeviceToHost;
    MUST(cudaMemcpy3D(&c));
    IS_TRUE(p == back);
    // A part from the middle.
    std::vector<float> part(10 * 5 * 2);
    c = {};
    c.srcArray = a;
    c.srcPos = make_cudaPos(100, 200, 1);
    c.dstPtr = make_cudaPitchedPtr(part.data(), 40, 10, 5);
    c.extent = make_cudaExtent(10, 5, 2);
    c.kind = cudaMemcpyDeviceToHost;
    MUST(cudaMemcpy3D(&c));
    bool same = true;
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 10; x++)
                same &=
                    part[(z * 5 + y) * 10 + x] == p[((size_t)(z + 1) * H + y + 200) * W + x + 100];
    IS_TRUE(same);
    MUST(cudaFreeArray(a));
}
static void between()
{
    const int W = 64, H = 8;
    auto p = numbers(W * H);
    std::vector<float> back(W * H);
    auto d = cudaCreateChannelDesc<float>();
    cudaArray_t a, b;
    float *pinned, *m = make(p);
    MUST(cudaMallocArray(&a, &d, W, H));
    MUST(cudaMallocArray(&b, &d, W, H));
    MUST(cudaMallocHost(&pinned, W * H * 4));
    MUST(cudaMemcpy2DToArray(a, 0, 0, m, W * 4, W * 4, H, cudaMemcpyDeviceToDevice));
    MUST(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, W * 4, H, cudaMemcpyDeviceToDevice));
    MUST(cudaMemcpy2DFromArray(pinned, W * 4, b, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
    IS_TRUE(std::vector<float>(pinned, pinned + W * H) == p);
    for (int i = 0; i < W * H; i++)
        pinned[i] = -p[i];
    MUST(cudaMemcpy2DToArrayAsync(a, 0, 0, pinned, W * 4, W * 4, H, cudaMemcpyHostToDevice, 0));
    MUST(cudaMemcpy2DFromArrayAsync(m, W * 4, a, 0, 0, W * 4, H, cudaMemcpyDeviceToDevice, 0));
    back = take(m, W * H);
    for (int i = 0; i < W * H; i++)
        back[i] = -back[i];
    IS_TRUE(back == p);
    MUST(cudaFreeArray(a));
    MUST(cudaFreeArray(b));
    MUST(cudaFreeHost(pinned));
}
static void layers()
{
    const int W = 4, H = 2, D = 5;
    auto p = numbers(W * H * D);
    auto d = cudaCreateChannelDesc<float>();
    cudaArray_t a;
    float *out;
    MUST(cudaMalloc3DArray(&a, &d, make_cudaExtent(W, H, D), cudaArrayLayered));
    fill(a, p, W, H, D);
    MUST(cudaMalloc(&out, D * 4));
    auto o = object(on(a));
    from_layers<<<1, D>>>(o, out);
    auto v = take(out, D);
    for (int i = 0; i < D; i++)
        IS_TRUE(v[i] == p[i * W * H + 1]);
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFreeArray(a));
    MUST(cudaFree(out));
}
static void cube()
{
    const int W = 3;
    auto p = numbers(W * W * 6);
    auto d = cudaCreateChannelDesc<float>();
    cudaArray_t a;
    float *out;
    MUST(cudaMalloc3DArray(&a, &d, make_cudaExtent(W, W, 6), cudaArrayCubemap));
    fill(a, p, W, W, 6);
    MUST(cudaMalloc(&out, 24));
    auto o = object(on(a), true);
    from_cube<<<1, 6>>>(o, out);
    auto v = take(out, 6);
    for (int i = 0; i < 6; i++)
        IS_TRUE(v[i] == p[i * 9 + 4]);
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFreeArray(a));
    MUST(cudaFree(out));
}
static void rows()
{
    const int W = 20, H = 4;
    auto p = numbers(W * H);
    float *m, *out;
    size_t pitch;
    MUST(cudaMallocPitch(&m, &pitch, W * 4, H));
    MUST(cudaMemcpy2D(m, pitch, p.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    MUST(cudaMalloc(&out, W * 4));
    cudaResourceDesc r = {}, same;
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = m;
    r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    r.res.pitch2D.width = W;
    r.res.pitch2D.height = H;
    r.res.pitch2D.pitchInBytes = pitch;
    auto o = object(r);
    MUST(cudaGetTextureObjectResourceDesc(&same, o));
    IS_TRUE(same.resType == r.resType && same.res.pitch2D.devPtr == m);
    for (float level = -1; level < 1; level++) {
        from_rows<<<1, W>>>(o, out, level);
        auto v = take(out, W);
        IS_TRUE(std::vector<float>(p.begin() + 2 * W, p.begin() + 3 * W) == v);
    }
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaFree(m));
    MUST(cudaFree(out));
}
__global__ void double_plane(cudaTextureObject_t t, float *o)
{
    o[blockIdx.x * blockDim.x + threadIdx.x] = 2 * tex2D<float>(t, threadIdx.x, blockIdx.x);
}
// A graph that copies into an array, reads it, and copies to another and back, each time anew.
static void captured()
{
    const int W = 24, H = 6, SIZE = W * H;
    auto d = cudaCreateChannelDesc<float>();
    std::vector<float> pageable(SIZE), back(SIZE);
    cudaArray_t a, b;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *m, *pinned;
    MUST(cudaMallocArray(&a, &d, W, H));
    MUST(cudaMallocArray(&b, &d, W, H));
    MUST(cudaMalloc(&m, SIZE * 4));
    MUST(cudaMallocHost(&pinned, SIZE * 4));
    MUST(cudaStreamCreate(&stream));
    auto o = object(on(a));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMemcpy2DToArrayAsync(a, 0, 0, pinned, W * 4, W * 4, H, cudaMemcpyHostToDevice,
                                  stream));
    double_plane<<<H, W, 0, stream>>>(o, m);
    MUST(cudaMemcpy2DToArrayAsync(b, 0, 0, m, W * 4, W * 4, H, cudaMemcpyDeviceToDevice, stream));
    // One row further down.
    MUST(cudaMemcpy2DFromArrayAsync(pinned, W * 4, b, 0, 1, W * 4, H - 1, cudaMemcpyDeviceToHost,
                                    stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < SIZE; i++)
        pinned[i] = i;
    for (int times = 0; times < 2; times++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    bool same = true;
    for (int i = 0; i < SIZE; i++) {
        const int row = i / W;
        same &= pinned[i] == (row < H - 2 ? 4 * (i + 2 * W) : row < H - 1 ? 2 * (i + W) : i);
    }
    IS_TRUE(same);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    // From and to memory that is not page-locked.
    cudaGraphNode_t up, down;
    cudaMemcpy3DParms c = {};
    MUST(cudaGraphCreate(&graph, 0));
    c.srcPtr = make_cudaPitchedPtr(pageable.data(), W * 4, W, H);
    c.dstArray = a;
    c.extent = make_cudaExtent(W, H, 1);
    c.kind = cudaMemcpyHostToDevice;
    MUST(cudaGraphAddMemcpyNode(&up, graph, NULL, 0, &c));
    c = {};
    c.srcArray = a;
    c.dstPtr = make_cudaPitchedPtr(back.data(), W * 4, W, H);
    c.extent = make_cudaExtent(W, H, 1);
    c.kind = cudaMemcpyDeviceToHost;
    MUST(cudaGraphAddMemcpyNode(&down, graph, &up, 1, &c));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int times = 1; times < 3; times++) {
        for (int i = 0; i < SIZE; i++)
            pageable[i] = i * times;
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        IS_TRUE(back == pageable);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaDestroyTextureObject(o));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFreeArray(a));
    MUST(cudaFreeArray(b));
    MUST(cudaFree(m));
    MUST(cudaFreeHost(pinned));
}
int main()
{
    RUN(large);
    RUN(between);
    RUN(layers);
    RUN(cube);
    RUN(rows);
    RUN(captured);
    return check_close();
}
