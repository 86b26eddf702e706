// SPDX-License-Identifier: Apache-2.0
// Cubes: which element of which face a direction meets, and filtering over the edges of faces.
#include <cmath>
#include <functional>

#include "textures.cuh"

static const int N = 8;

__global__ void look_around(cudaTextureObject_t t, const float4 *at, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = texCubemap<float>(t, at[i].x, at[i].y, at[i].z);
}

__global__ void look_around_one(cudaTextureObject_t t, const float4 *at, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = texCubemapLayered<float>(t, at[i].x, at[i].y, at[i].z, (int)at[i].w);
}

// A direction to a point of a face, where s and t go from -1 to 1.
static float4 direction(int face, float s, float t, int layer)
{
    const float all[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                             {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};

    return make_float4(all[face][0] * 3, all[face][1] * 3, all[face][2] * 3, layer);
}

static cudaTextureObject_t cube(int cubes, bool seamless, const std::function<float(int)> &value,
                                cudaArray_t *ret_array)
{
    const unsigned flags = cudaArrayCubemap | (cubes > 1 ? cudaArrayLayered : 0);
    auto channels = cudaCreateChannelDesc<float>();
    std::vector<float> values(N * N * 6 * cubes);
    cudaMemcpy3DParms copy = {};
    cudaTextureDesc d = {};

    for (size_t i = 0; i < values.size(); i++)
        values[i] = value(i);
    MUST(cudaMalloc3DArray(ret_array, &channels, make_cudaExtent(N, N, 6 * cubes), flags));
    copy.srcPtr = make_cudaPitchedPtr(values.data(), N * 4, N, N);
    copy.dstArray = *ret_array;
    copy.extent = make_cudaExtent(N, N, 6 * cubes);
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    d.normalizedCoords = 1;
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
    d.filterMode = seamless ? cudaFilterModeLinear : cudaFilterModePoint;
    d.seamlessCubemap = seamless;
    return texture_on(*ret_array, d);
}

// The middle of every element of every face of every cube.
static void faces()
{
    const int cubes = 2;
    cudaArray_t array;
    cudaTextureObject_t texture = cube(
        cubes, false, [](int i) { return (float)i; }, &array);
    std::vector<float4> at;
    float *out;

    for (int i = 0; i < N * N * 6 * cubes; i++) {
        const float s = (i % N + .5f) * 2 / N - 1, t = (i / N % N + .5f) * 2 / N - 1;
        at.push_back(direction(i / N / N % 6, s, t, i / N / N / 6));
    }
    float4 *there = make(at);
    MUST(cudaMalloc(&out, at.size() * sizeof(float)));
    look_around_one<<<at.size() / N, N>>>(texture, there, out);
    auto found = take(out, at.size());
    bool same = true;
    for (size_t i = 0; i < at.size(); i++)
        same &= found[i] == i;
    IS_TRUE(same);
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(there));
    MUST(cudaFree(out));
}

// Half way between two faces is the mean of the elements on both sides, and there is no seam.
static void edges()
{
    cudaArray_t array;
    cudaTextureObject_t texture = cube(
        1, true, [](int i) { return (float)(i / N / N * 16); }, &array);
    // From the middle of one face over an edge to the middle of its neighbor.
    const int from[3] = {0, 2, 4}, to[3] = {4, 0, 3};
    std::vector<float4> at;
    float *out;

    for (int i = 0; i < 3; i++) {
        const float4 a = direction(from[i], 0, 0, 0), b = direction(to[i], 0, 0, 0);
        at.push_back(a);
        at.push_back(make_float4(a.x + b.x, a.y + b.y, a.z + b.z, 0));
        at.push_back(b);
    }
    float4 *there = make(at);
    MUST(cudaMalloc(&out, at.size() * sizeof(float)));
    look_around<<<3, 3>>>(texture, there, out);
    auto found = take(out, at.size());
    for (int i = 0; i < 3; i++) {
        IS_TRUE(found[3 * i] == from[i] * 16 && found[3 * i + 2] == to[i] * 16);
        IS_TRUE(std::fabs(found[3 * i + 1] - (from[i] + to[i]) * 8) <= 64.f / 128);
    }
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFreeArray(array));
    MUST(cudaFree(there));
    MUST(cudaFree(out));
}

int main()
{
    RUN(faces);
    RUN(edges);
    return check_close();
}
