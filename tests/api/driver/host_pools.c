/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the host: page-locked memory in the order of a stream. It is at one address for
 * the program and the devices that are allowed to use it.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

#define COUNT 4096
#define SIZE (COUNT * sizeof(uint32_t))

static CUdevice device;
static CUmodule module;
static CUstream stream;

static CUresult create(CUmemoryPool *pool, CUmemLocationType type, int id,
                       CUmemAllocationHandleType handles)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}, .handleTypes = handles};

    return cuMemPoolCreate(pool, &props);
}

static CUmemoryPool make_pool(CUmemLocationType type)
{
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;

    MUST(create(&pool, type, 0, CU_MEM_HANDLE_TYPE_NONE));
    MUST(cuMemPoolSetAccess(pool, &access, 1));
    return pool;
}

static uint32_t *words_of(CUdeviceptr memory)
{
    return (uint32_t *)(uintptr_t)memory;
}

static void launch_fill(CUdeviceptr words, uint32_t value)
{
    uint32_t n = COUNT;
    void *values[] = {&words, &value, &n};

    MUST(cuLaunchKernel(get_kernel(module, "fill"), COUNT / 64, 1, 1, 64, 1, 1, 0, stream, values,
                        NULL));
}

static void use_of(CUmemLocationType type)
{
    CUmemoryPool pool = make_pool(type);
    CUdeviceptr memory, on_device = make_words(COUNT, 3);

    MUST(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    launch_fill(memory, 5);
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_of(memory)[0] == 5 && words_of(memory)[COUNT - 1] == 5);
    memset(words_of(memory), 7, SIZE);
    EXPECT(CUDA_SUCCESS, cuMemcpyAsync(on_device, memory, SIZE, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_are(on_device, COUNT, 0x07070707));
    EXPECT(CUDA_SUCCESS, cuMemsetD32Async(memory, 9, COUNT, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_of(memory)[17] == 9);
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolDestroy(pool));
    MUST(cuMemFree_v2(on_device));
}

static void both_sides_use_it(void)
{
    use_of(CU_MEM_LOCATION_TYPE_HOST);
    use_of(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

static uint64_t count(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    MUST(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

/* NVIDIA's driver (580) goes on counting freed memory for a time that no document names. */
static void it_is_counted(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_HOST);
    CUdeviceptr first, second;

    MUST(cuMemAllocFromPoolAsync(&first, SIZE, pool, stream));
    MUST(cuMemAllocFromPoolAsync(&second, SIZE, pool, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2 * SIZE);
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(second));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2 * SIZE);
    EXPECT(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
    MUST(cuMemPoolDestroy(pool));
}

static void a_pointer_tells(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_HOST), told = NULL;
    CUdeviceptr memory, from_device = 0;
    CUmemorytype type = CU_MEMORYTYPE_ARRAY;
    size_t size = 0;
    void *from_host = NULL;

    MUST(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 4));
    MUST(cuPointerGetAttribute(&from_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 4));
    MUST(cuPointerGetAttribute(&from_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory + 4));
    MUST(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 4));
    MUST(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory + 4));
    IS_TRUE(type == CU_MEMORYTYPE_HOST);
    IS_TRUE(from_device == memory + 4 && (uintptr_t)from_host == memory + 4);
    IS_TRUE(size == SIZE);
    IS_TRUE(told == pool);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(words_of(memory)));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemHostGetDevicePointer_v2(&from_device, words_of(memory), 0));
    EXPECT(CUDA_SUCCESS, cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolDestroy(pool));
}

static CUmemAccess_flags access_of(CUmemoryPool pool, CUmemLocationType type, int id)
{
    CUmemLocation location = {type, id};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;

    EXPECT(CUDA_SUCCESS, cuMemPoolGetAccess(&flags, pool, &location));
    return flags;
}

static void devices_are_allowed(void)
{
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;

    MUST(create(&pool, CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_HANDLE_TYPE_NONE));
    IS_TRUE(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, device) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EXPECT(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    IS_TRUE(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, device) ==
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    EXPECT(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    IS_TRUE(access_of(pool, CU_MEM_LOCATION_TYPE_DEVICE, device) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    access.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    IS_TRUE(access_of(pool, CU_MEM_LOCATION_TYPE_HOST, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT(CUDA_SUCCESS, cuMemPoolSetAccess(pool, &access, 1));
    MUST(cuMemPoolDestroy(pool));
}

static void places_have_pools(void)
{
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_HOST), standard, current;

    MUST(cuMemGetDefaultMemPool(&standard, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    MUST(cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS_TRUE(standard && current == standard);
    EXPECT(CUDA_SUCCESS, cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    MUST(cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    IS_TRUE(current == pool);
    EXPECT(CUDA_SUCCESS, cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
    EXPECT(CUDA_SUCCESS, cuMemPoolDestroy(pool));
}

static void what_cannot_be_is_refused(void)
{
    CUmemoryPool pool;

    EXPECT(CUDA_ERROR_INVALID_VALUE,
           create(&pool, CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           create(&pool, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, CU_MEM_HANDLE_TYPE_NONE));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           create(&pool, CU_MEM_LOCATION_TYPE_HOST_NUMA, 9999, CU_MEM_HANDLE_TYPE_NONE));
}

int main(void)
{
    int supported = 0;

    device = check_open();
    MUST(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, device));
    if (!supported) {
        puts("the device has no pools of host memory");
        return 77;
    }
    module = load_kernels();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    RUN(both_sides_use_it);
    RUN(it_is_counted);
    RUN(a_pointer_tells);
    RUN(devices_are_allowed);
    RUN(places_have_pools);
    RUN(what_cannot_be_is_refused);
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(module));
    return check_close();
}
