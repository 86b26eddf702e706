// SPDX-License-Identifier: Apache-2.0
// Texture and surface references of CUDA C++, which nvcc compiled until CUDA 11.
#include <cstdio>
#include <cstdlib>

#define SIDE 16

texture<float, 2, cudaReadModeElementType> plane;
texture<int, 1, cudaReadModeElementType> line;
surface<void, cudaSurfaceType2D> canvas;

static void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

__global__ void read_plane(float *out)
{
    int x = threadIdx.x, y = threadIdx.y;
    out[y * SIDE + x] = tex2D(plane, x + 0.5f, y + 0.5f);
}

__global__ void read_line(int *out, int count)
{
    int i = threadIdx.x;
    if (i < count)
        out[i] = tex1Dfetch(line, i) * 2;
}

__global__ void draw(float add)
{
    int x = threadIdx.x, y = threadIdx.y;
    surf2Dwrite(y * 100 + x + add, canvas, x * sizeof(float), y);
}

static float sum(const float *values)
{
    float all = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        all += values[i];
    return all;
}

static void read(float *device, const char *title)
{
    static float values[SIDE * SIDE];
    read_plane<<<1, dim3(SIDE, SIDE)>>>(device);
    must(cudaMemcpy(values, device, sizeof(values), cudaMemcpyDeviceToHost), title);
    std::printf("%s: %g %g, sum %g\n", title, values[1], values[SIDE + 3], sum(values));
}

int main()
{
    static float given[SIDE * SIDE];
    cudaArray_t arrays[2];
    float *out;
    int *numbers, host[64];
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

    must(cudaMalloc(&out, sizeof(given)), "cudaMalloc");
    for (int a = 0; a < 2; a++) {
        for (int i = 0; i < SIDE * SIDE; i++)
            given[i] = i + 1000.0f * a;
        must(cudaMallocArray(&arrays[a], &format, SIDE, SIDE, cudaArraySurfaceLoadStore), "array");
        must(cudaMemcpy2DToArray(arrays[a], 0, 0, given, SIDE * 4, SIDE * 4, SIDE,
                                 cudaMemcpyHostToDevice), "copy");
    }
    plane.filterMode = cudaFilterModePoint;
    plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeClamp;
    must(cudaBindTextureToArray(plane, arrays[0]), "bind");
    read(out, "first");
    must(cudaBindTextureToArray(plane, arrays[1]), "bind anew");
    read(out, "second");
    must(cudaBindSurfaceToArray(canvas, arrays[1]), "bind a surface");
    draw<<<1, dim3(SIDE, SIDE)>>>(0.5f);
    read(out, "drawn");
    must(cudaMalloc(&numbers, sizeof(host)), "cudaMalloc");
    for (int i = 0; i < 64; i++)
        host[i] = 3 * i;
    must(cudaMemcpy(numbers, host, sizeof(host), cudaMemcpyHostToDevice), "copy");
    must(cudaBindTexture(nullptr, line, numbers, sizeof(host)), "bind memory");
    read_line<<<1, 64>>>(reinterpret_cast<int *>(out), 64);
    must(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost), "read");
    std::printf("line: %d %d\n", host[1], host[63]);
    must(cudaUnbindTexture(plane), "unbind");
    must(cudaDeviceSynchronize(), "the end");
    std::printf("ok\n");
    return 0;
}
