/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: one address for host and device, and what a program may say about it. Batches of
 * copies, which move between all kinds of memory, are here as well.
 */
#include "check.h"

#include <string.h>

#define WORDS 4096
#define BYTES (WORDS * sizeof(uint32_t))

static CUmodule kernels;
static CUdevice device;

static uint32_t *make_managed(CUdeviceptr *ret_address)
{
    MUST(cuMemAllocManaged(ret_address, BYTES, CU_MEM_ATTACH_GLOBAL));
    return (uint32_t *)(uintptr_t)*ret_address;
}

static bool all_are(const uint32_t *words, uint32_t value)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != value)
            return false;
    return true;
}

static void host_and_device_take_turns(void)
{
    CUdeviceptr address;
    uint32_t *words = make_managed(&address), value = 1, n = WORDS, turns = 0;
    void *parameters[] = {&address, &value, &n, &turns};

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < WORDS; i++)
            words[i] += 10;
        launch_one(get_kernel(kernels, "slow_add"), NULL, parameters);
        MUST(cuCtxSynchronize());
        IS_TRUE(all_are(words, 11 * (round + 1)));
    }
    MUST(cuMemFree_v2(address));
}

static int range_attribute(CUdeviceptr address, CUmem_range_attribute attribute)
{
    int value = 99;

    EXPECT(CUDA_SUCCESS, cuMemRangeGetAttribute(&value, sizeof(value), attribute, address, BYTES));
    return value;
}

static void advice_is_remembered(void)
{
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0},
                  here = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUdeviceptr address;
    int accessors[3] = {99, 99, 99};

    make_managed(&address);
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) ==
            CU_DEVICE_INVALID);
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) ==
            CU_DEVICE_INVALID);
    EXPECT(CUDA_SUCCESS,
           cuMemAdvise_v2(address, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == device);
    EXPECT(CUDA_SUCCESS,
           cuMemAdvise_v2(address, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
    EXPECT(CUDA_SUCCESS,
           cuMemAdvise(address, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, device));
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) ==
            CU_DEVICE_INVALID);
    EXPECT(CUDA_SUCCESS, cuMemAdvise(address, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    EXPECT(CUDA_SUCCESS,
           cuMemRangeGetAttribute(accessors, sizeof(accessors), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                  address, BYTES));
    IS_TRUE(accessors[0] == device && accessors[1] == CU_DEVICE_INVALID);
    EXPECT(CUDA_SUCCESS, cuMemAdvise(address, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
    MUST(cuMemFree_v2(address));
}

static void memory_is_prefetched(void)
{
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUdeviceptr address, plain = make_words(WORDS, 0);
    uint32_t *words = make_managed(&address), value = 3, n = WORDS;
    void *parameters[] = {&address, &value, &n};

    EXPECT(CUDA_SUCCESS, cuMemPrefetchAsync(address, BYTES, device, NULL));
    launch_one(get_kernel(kernels, "fill"), NULL, parameters);
    EXPECT(CUDA_SUCCESS, cuMemPrefetchAsync_v2(address, BYTES, host, 0, NULL));
    MUST(cuCtxSynchronize());
    IS_TRUE(all_are(words, 3));
    IS_TRUE(range_attribute(address, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) ==
            CU_DEVICE_CPU);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(address, BYTES, 1000, NULL));
    IS_TRUE(cuMemPrefetchAsync(plain, BYTES, device, NULL) != CUDA_SUCCESS);
    MUST(cuMemFree_v2(address));
    MUST(cuMemFree_v2(plain));
}

static void memory_is_attached(void)
{
    CUdeviceptr address;
    CUstream stream;

    make_managed(&address);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE));
    EXPECT(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_GLOBAL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, address, 0, 77));
    MUST(cuStreamSynchronize(stream));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(address));
}

/* Each value with words around it that no copy may touch. */
static void attributes_of_managed_memory(void)
{
    struct {
        unsigned type, after_type;
        int managed, after_managed, ordinal, after_ordinal;
        CUdeviceptr on_device, start;
        void *on_host;
        size_t size;
    } got = {.after_type = 0xabcd, .after_managed = 0xabcd, .after_ordinal = 0xabcd};
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&got.type,    &got.managed, &got.ordinal, &got.on_device,
                      &got.on_host, &got.start,   &got.size};
    CUdeviceptr address;

    make_managed(&address);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttributes(7, attributes, values, address + 64));
    IS_TRUE(got.type == CU_MEMORYTYPE_DEVICE && got.managed == 1 && got.ordinal == device);
    IS_TRUE(got.after_type == 0xabcd && got.after_managed == 0xabcd && got.after_ordinal == 0xabcd);
    IS_TRUE(got.on_device == address + 64 && (CUdeviceptr)(uintptr_t)got.on_host == address + 64);
    IS_TRUE(got.start == address && got.size >= BYTES);
    MUST(cuMemFree_v2(address));
}

static void batches_of_copies(void)
{
    CUdeviceptr a = make_words(WORDS, 1), b = make_words(WORDS, 2), to = make_words(2 * WORDS, 0);
    CUdeviceptr dsts[] = {to, to + BYTES}, srcs[] = {a, b};
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t sizes[] = {BYTES, BYTES}, first = 0;
    CUDA_MEMCPY3D_BATCH_OP op = {
        .src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = b, .rowLength = 64, .layerHeight = 4}}},
        .dst = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = a, .rowLength = 128, .layerHeight = 8}}},
        .extent = {16, 2, 2},
        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
    };
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &how, &first, 1, stream));
    EXPECT(CUDA_SUCCESS, cuMemcpy3DBatchAsync_v2(1, &op, 0, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(to, WORDS, 1) && words_are(to + BYTES, WORDS, 2));
    IS_TRUE(word_at(a) == 2 && word_at(a + 16) == 1 && word_at(a + 128) == 2);
    IS_TRUE(word_at(a + 256) == 1 && word_at(a + 128 * 8 + 128 + 12) == 2);
    IS_TRUE(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &how, &first, 0, stream) != CUDA_SUCCESS);
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuMemFree_v2(a));
    MUST(cuMemFree_v2(b));
    MUST(cuMemFree_v2(to));
}

int main(void)
{
    device = check_open();
    kernels = load_kernels();
    RUN(host_and_device_take_turns);
    RUN(advice_is_remembered);
    RUN(memory_is_prefetched);
    RUN(memory_is_attached);
    RUN(attributes_of_managed_memory);
    RUN(batches_of_copies);
    return check_close();
}
