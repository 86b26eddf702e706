/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of a program's own: what is from which pool is counted there, and goes back there.
 */
#include "check.h"

#define SIZE ((size_t)4 << 20)

static CUdevice device;
static CUstream stream;

static CUmemoryPool make_pool(void)
{
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
    };
    CUmemoryPool pool;

    MUST(cuMemPoolCreate(&pool, &props));
    return pool;
}

static uint64_t count(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    MUST(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void counts_are_apart(void)
{
    CUmemoryPool one = make_pool(), other = make_pool();
    CUdeviceptr first, second;

    IS_TRUE(count(one, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    MUST(cuMemAllocFromPoolAsync(&first, SIZE, one, stream));
    MUST(cuMemAllocFromPoolAsync(&second, SIZE, one, stream));
    MUST(cuMemsetD32Async(first, 5, SIZE / 4, stream));
    MUST(cuMemsetD32Async(second, 6, SIZE / 4, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(first, SIZE / 4, 5) && words_are(second, SIZE / 4, 6));
    IS_TRUE(count(one, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 2 * SIZE);
    IS_TRUE(count(one, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2 * SIZE);
    IS_TRUE(count(other, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    MUST(cuMemFreeAsync(first, stream));
    MUST(cuMemFreeAsync(second, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(count(one, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    IS_TRUE(count(one, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2 * SIZE);
    EXPECT(CUDA_SUCCESS, cuMemPoolTrimTo(one, 0));
    MUST(cuMemPoolDestroy(one));
    MUST(cuMemPoolDestroy(other));
}

/* What is reserved stays over a synchronization as far as the threshold says. */
static void thresholds(void)
{
    const size_t large = (size_t)96 << 20;
    CUmemoryPool pool = make_pool();
    cuuint64_t all = UINT64_MAX, none = 0;
    CUdeviceptr memory;

    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    MUST(cuMemAllocFromPoolAsync(&memory, large, pool, stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= large);
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= large);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    MUST(cuMemAllocFromPoolAsync(&memory, large, pool, stream));
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuCtxSynchronize());
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= large);
    MUST(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == SIZE);
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= large);
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= large);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &all));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &none));
    MUST(cuMemPoolDestroy(pool));
}

static void settings(void)
{
    CUmemoryPool pool = make_pool();
    cuuint64_t threshold = UINT64_MAX, zero = 0;
    CUdeviceptr memory;
    int no = 0, answer = 9;

    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &answer));
    IS_TRUE(answer == 0);
    MUST(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
    MUST(cuMemPoolDestroy(pool));
}

static void the_current_pool(void)
{
    CUmemoryPool pool = make_pool(), standard, current;
    CUdeviceptr memory;

    MUST(cuDeviceGetDefaultMemPool(&standard, device));
    MUST(cuDeviceGetMemPool(&current, device));
    IS_TRUE(current == standard);
    MUST(cuDeviceSetMemPool(device, pool));
    MUST(cuDeviceGetMemPool(&current, device));
    IS_TRUE(current == pool);
    MUST(cuMemAllocAsync(&memory, SIZE, stream));
    IS_TRUE(count(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == SIZE);
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemFree_v2(memory));
    MUST(cuMemPoolDestroy(pool));
    MUST(cuDeviceGetMemPool(&current, device));
    IS_TRUE(current == standard);
}

static void nothing_is_an_allocation(void)
{
    CUmemoryPool pool = make_pool();
    CUdeviceptr memory = 1;

    EXPECT(CUDA_SUCCESS, cuMemAllocAsync(&memory, 0, stream));
    IS_TRUE(memory == 0);
    memory = 1;
    EXPECT(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&memory, 0, pool, stream));
    IS_TRUE(memory == 0);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&memory, 0));
    MUST(cuMemPoolDestroy(pool));
}

/* Its memory outlives a pool. */
static void destroyed_before_its_memory(void)
{
    CUmemoryPool pool = make_pool();
    CUdeviceptr memory;

    MUST(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
    MUST(cuMemsetD32Async(memory, 7, SIZE / 4, stream));
    MUST(cuMemPoolDestroy(pool));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(memory, SIZE / 4, 7));
    MUST(cuMemFreeAsync(memory, stream));
    MUST(cuStreamSynchronize(stream));
}

int main(void)
{
    device = check_open();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    RUN(counts_are_apart);
    RUN(thresholds);
    RUN(settings);
    RUN(the_current_pool);
    RUN(nothing_is_an_allocation);
    RUN(destroyed_before_its_memory);
    MUST(cuStreamDestroy_v2(stream));
    return check_close();
}
