/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear memory: allocation, every plain direction of copies, memsets, pinned memory.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (3 << 20)

static uint8_t *pattern(size_t size, unsigned seed)
{
    uint8_t *bytes = malloc(size);

    for (size_t i = 0; bytes && i < size; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
    return bytes;
}

static void allocation(void)
{
    CUdeviceptr a, b, base = 0;
    size_t size = 0, free_bytes = 0, total = 0;

    /* The context itself takes some. */
    EXPECT(CUDA_SUCCESS, cuMemGetInfo_v2(&free_bytes, &total));
    IS_TRUE(free_bytes > 0 && free_bytes < total);
    EXPECT(CUDA_SUCCESS, cuMemAlloc_v2(&a, 1000));
    EXPECT(CUDA_SUCCESS, cuMemAlloc_v2(&b, SIZE));
    IS_TRUE(a != 0 && b != 0 && a % 256 == 0 && b % 256 == 0);
    IS_TRUE(a + 1000 <= b || b + SIZE <= a);
    EXPECT(CUDA_SUCCESS, cuMemGetAddressRange_v2(&base, &size, b + 12345));
    IS_TRUE(base == b && size == SIZE);
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(a));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(b));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(0));
}

static void bad_allocations(void)
{
    CUdeviceptr pointer;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&pointer, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 16));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&pointer, (size_t)1 << 46));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(0x1234));
}

static void many_allocations(void)
{
    enum { COUNT = 500 };
    static CUdeviceptr pointers[COUNT];
    bool right = true;

    for (unsigned i = 0; i < COUNT; i++)
        pointers[i] = make_words(i + 1, i);
    for (unsigned i = 0; i < COUNT; i += 2)
        MUST(cuMemFree_v2(pointers[i]));
    for (unsigned i = 0; i < COUNT; i += 2)
        pointers[i] = make_words(3 * i + 1, 2 * i);
    for (unsigned i = 0; i < COUNT; i++) {
        right &= words_are(pointers[i], i % 2 ? i + 1 : 3 * i + 1, i % 2 ? i : 2 * i);
        MUST(cuMemFree_v2(pointers[i]));
    }
    IS_TRUE(right);
}

static void copies(void)
{
    uint8_t *in = pattern(SIZE, 1), *out = calloc(1, SIZE);
    CUdeviceptr a, b;

    MUST(cuMemAlloc_v2(&a, SIZE));
    MUST(cuMemAlloc_v2(&b, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(a, in, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoD_v2(b, a, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(out, b, SIZE));
    IS_TRUE(memcmp(in, out, SIZE) == 0);
    /* Odd sizes at odd places. */
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(a + 3, in + 1001, 70001));
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoH_v2(out + 1, a + 3, 70001));
    IS_TRUE(memcmp(in + 1001, out + 1, 70001) == 0);
    IS_TRUE(out[0] == in[0] && memcmp(out + 70002, in + 70002, SIZE - 70002) == 0);
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoD_v2(a, in, 0));
    /* By address alone: the driver knows the kind of each side. */
    memset(out, 0, SIZE);
    EXPECT(CUDA_SUCCESS, cuMemcpy(a, (CUdeviceptr)(uintptr_t)in, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpy((CUdeviceptr)(uintptr_t)out, a, SIZE));
    IS_TRUE(memcmp(in, out, SIZE) == 0);
    MUST(cuMemFree_v2(a));
    MUST(cuMemFree_v2(b));
    free(in);
    free(out);
}

/* The host's buffer may be used again when a copy of pageable memory returns. */
static void pageable_copies_in_a_stream(void)
{
    uint8_t *in = pattern(SIZE, 2), *out = calloc(1, SIZE), *kept = pattern(SIZE, 2);
    CUstream stream;
    CUdeviceptr a;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc_v2(&a, SIZE));
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(a, in, SIZE, stream));
    memset(in, 0, SIZE);
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(out, a, SIZE, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(memcmp(kept, out, SIZE) == 0);
    MUST(cuMemFree_v2(a));
    MUST(cuStreamDestroy_v2(stream));
    free(in);
    free(out);
    free(kept);
}

static void bad_copies(void)
{
    CUdeviceptr a = make_words(4, 0);
    uint32_t word = 0;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0, &word, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(&word, 0, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(NULL, a, 4));
    MUST(cuMemFree_v2(a));
}

static void memsets(void)
{
    CUdeviceptr a = make_words(4096, 0xffffffff);
    CUstream stream;

    EXPECT(CUDA_SUCCESS, cuMemsetD8_v2(a, 0xab, 16));
    EXPECT(CUDA_SUCCESS, cuMemsetD16_v2(a + 16, 0xcdef, 8));
    EXPECT(CUDA_SUCCESS, cuMemsetD32_v2(a + 32, 0x12345678, 4));
    IS_TRUE(words_are(a, 4, 0xabababab) && words_are(a + 16, 4, 0xcdefcdef));
    IS_TRUE(words_are(a + 32, 4, 0x12345678) && words_are(a + 48, 4, 0xffffffff));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 2, 0, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(a + 1, 0, 1));
    /* 3 rows of 2 words, 64 bytes apart. */
    EXPECT(CUDA_SUCCESS, cuMemsetD2D32_v2(a + 1024, 64, 7, 2, 3));
    for (unsigned row = 0; row < 3; row++)
        IS_TRUE(words_are(a + 1024 + 64 * row, 2, 7) &&
                words_are(a + 1032 + 64 * row, 2, 0xffffffff));
    MUST(cuStreamCreate(&stream, 0));
    EXPECT(CUDA_SUCCESS, cuMemsetD8Async(a, 1, 4096, stream));
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(a + 4096, 2, 1024, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_are(a, 1024, 0x01010101) && words_are(a + 4096, 1024, 2));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(a));
}

static void rows(void)
{
    enum { WIDTH = 100, HEIGHT = 37, HOST_PITCH = 128 };
    uint8_t *in = pattern((size_t)HOST_PITCH * HEIGHT, 3), *out = calloc(HOST_PITCH, HEIGHT);
    CUdeviceptr a;
    size_t pitch = 0;
    CUDA_MEMCPY2D copy = {0};
    bool right = true;

    EXPECT(CUDA_SUCCESS, cuMemAllocPitch_v2(&a, &pitch, WIDTH, HEIGHT, 4));
    IS_TRUE(pitch >= WIDTH && pitch % 4 == 0);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in;
    copy.srcPitch = HOST_PITCH;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = a;
    copy.dstPitch = pitch;
    copy.WidthInBytes = WIDTH;
    copy.Height = HEIGHT;
    EXPECT(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));

    /* Back, without the first 2 rows and the first 5 columns. */
    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcPitch = pitch;
    copy.srcXInBytes = 5;
    copy.srcY = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out;
    copy.dstPitch = HOST_PITCH;
    copy.WidthInBytes = WIDTH - 5;
    copy.Height = HEIGHT - 2;
    EXPECT(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));
    for (unsigned row = 0; row < HEIGHT - 2; row++)
        right &= memcmp(out + row * HOST_PITCH, in + (row + 2) * HOST_PITCH + 5, WIDTH - 5) == 0 &&
                 out[row * HOST_PITCH + WIDTH - 5] == 0;
    IS_TRUE(right);
    MUST(cuMemFree_v2(a));
    free(in);
    free(out);
}

/* A pitch of 0 is no mistake. */
static void no_pitch(void)
{
    CUdeviceptr a = make_words(1024, 3), b = make_words(1024, 4);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = b,
                          .WidthInBytes = 16,
                          .Height = 2};

    EXPECT(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));
    copy.srcXInBytes = 4;
    EXPECT(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));
    IS_TRUE(words_are(b, 4, 3));
    MUST(cuMemFree_v2(a));
    MUST(cuMemFree_v2(b));
}

static void boxes(void)
{
    enum { WIDTH = 40, HEIGHT = 6, DEPTH = 5 };
    uint8_t *in = pattern((size_t)WIDTH * HEIGHT * DEPTH, 4), *out = calloc(WIDTH * HEIGHT, DEPTH);
    CUdeviceptr a;
    CUDA_MEMCPY3D copy = {0};
    bool right = true;

    MUST(cuMemAlloc_v2(&a, 64 * 8 * DEPTH));
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in;
    copy.srcPitch = WIDTH;
    copy.srcHeight = HEIGHT;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = a;
    copy.dstPitch = 64;
    copy.dstHeight = 8;
    copy.WidthInBytes = WIDTH;
    copy.Height = HEIGHT;
    copy.Depth = DEPTH;
    copy.reserved0 = &copy; /* NVIDIA's driver does not look at it */
    EXPECT(CUDA_SUCCESS, cuMemcpy3D_v2(&copy));

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcPitch = 64;
    copy.srcHeight = 8;
    copy.srcZ = 1;
    copy.srcY = 2;
    copy.srcXInBytes = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = out;
    copy.dstPitch = WIDTH;
    copy.dstHeight = HEIGHT;
    copy.WidthInBytes = WIDTH - 3;
    copy.Height = HEIGHT - 2;
    copy.Depth = DEPTH - 1;
    EXPECT(CUDA_SUCCESS, cuMemcpy3D_v2(&copy));
    for (unsigned z = 0; z < DEPTH - 1; z++)
        for (unsigned y = 0; y < HEIGHT - 2; y++)
            right &= memcmp(out + (z * HEIGHT + y) * WIDTH,
                            in + ((z + 1) * HEIGHT + y + 2) * WIDTH + 3, WIDTH - 3) == 0;
    IS_TRUE(right);
    MUST(cuMemFree_v2(a));
    free(in);
    free(out);
}

/* The device writes where the host reads. */
static void pinned_memory(void)
{
    CUmodule module = load_kernels();
    CUfunction fill = get_kernel(module, "fill");
    uint32_t *host, value = 77, n = 1000;
    CUdeviceptr pointer = 0;
    void *parameters[] = {&pointer, &value, &n};
    unsigned flags = 0;

    EXPECT(CUDA_SUCCESS, cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(host, 0, 4096);
    EXPECT(CUDA_SUCCESS, cuMemHostGetDevicePointer_v2(&pointer, host, 0));
    EXPECT(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
    IS_TRUE(flags & CU_MEMHOSTALLOC_DEVICEMAP);
    launch_one(fill, NULL, parameters);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(host[0] == 77 && host[999] == 77 && host[1000] == 0);
    EXPECT(CUDA_SUCCESS, cuMemFreeHost(host));
    EXPECT(CUDA_SUCCESS, cuMemAllocHost_v2((void **)&host, SIZE));
    memset(host, 5, SIZE);
    pointer = make_words(SIZE / 4, 0);
    EXPECT(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(pointer, host, SIZE, NULL));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(words_are(pointer, SIZE / 4, 0x05050505));
    EXPECT(CUDA_SUCCESS, cuMemFreeHost(host));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(pointer));
    EXPECT(CUDA_SUCCESS, cuModuleUnload(module));
}

/* cudaMallocHost() of an empty vector, for example. */
static void no_pinned_memory(void)
{
    void *host = &host;

    EXPECT(CUDA_SUCCESS, cuMemAllocHost_v2(&host, 0));
    IS_TRUE(!host);
    host = &host;
    EXPECT(CUDA_SUCCESS, cuMemHostAlloc(&host, 0, 0));
    IS_TRUE(!host);
    EXPECT(CUDA_SUCCESS, cuMemFreeHost(host));
}

static void peers_without_contexts(void)
{
    CUdeviceptr here = make_words(4, 7), there = make_words(4, 0);

    EXPECT(CUDA_SUCCESS, cuMemcpyPeer(there, NULL, here, NULL, 8));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(words_are(there, 2, 7));
    EXPECT(CUDA_SUCCESS, cuMemcpyPeerAsync(there, NULL, here, NULL, 16, NULL));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(words_are(there, 4, 7));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(here));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(there));
}

static void a_block_of_every_size(void)
{
    bool right = true;

    for (size_t size = 1; size <= 64 << 20; size = size * 3 + 1) {
        CUdeviceptr pointer;
        uint8_t byte = 0;

        MUST(cuMemAlloc_v2(&pointer, size));
        MUST(cuMemsetD8_v2(pointer, 0x5a, size));
        MUST(cuMemcpyDtoH_v2(&byte, pointer + size - 1, 1));
        right &= byte == 0x5a;
        MUST(cuMemFree_v2(pointer));
    }
    IS_TRUE(right);
}

int main(void)
{
    check_open();
    RUN(allocation);
    RUN(bad_allocations);
    RUN(many_allocations);
    RUN(copies);
    RUN(pageable_copies_in_a_stream);
    RUN(bad_copies);
    RUN(memsets);
    RUN(rows);
    RUN(no_pitch);
    RUN(boxes);
    RUN(pinned_memory);
    RUN(no_pinned_memory);
    RUN(peers_without_contexts);
    RUN(a_block_of_every_size);
    return check_close();
}
