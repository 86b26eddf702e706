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

static void advise(CUdeviceptr address, CUmem_advise advice, CUmemLocation location)
{
    EXPECT(CUDA_SUCCESS, cuMemAdvise_v2(address, BYTES, advice, location));
}

/* What was advised, all of it in one call. */
static void expect_advice(CUdeviceptr address, int read_mostly, int preferred, int type, int first,
                          int second)
{
    int got_read_mostly = 99, got_preferred = 99, got_type = 99, accessors[2] = {99, 99};
    void *data[] = {&got_read_mostly, &got_preferred, &got_type, accessors};
    size_t sizes[] = {4, 4, 4, 8};
    CUmem_range_attribute attributes[] = {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};

    EXPECT(CUDA_SUCCESS, cuMemRangeGetAttributes(data, sizes, attributes, 4, address, BYTES));
    IS_TRUE(got_read_mostly == read_mostly);
    IS_TRUE(got_preferred == preferred && got_type == type);
    IS_TRUE(accessors[0] == first && accessors[1] == second);
}

static void all_advice_is_taken_back(void)
{
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0},
                        here = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    const int none = CU_DEVICE_INVALID;
    CUdeviceptr address;
    uint32_t *words = make_managed(&address);

    memset(words, 0, BYTES);
    expect_advice(address, 0, none, CU_MEM_LOCATION_TYPE_INVALID, none, none);
    advise(address, CU_MEM_ADVISE_SET_READ_MOSTLY, here);
    advise(address, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here);
    advise(address, CU_MEM_ADVISE_SET_ACCESSED_BY, here);
    expect_advice(address, 1, device, CU_MEM_LOCATION_TYPE_DEVICE, device, none);
    advise(address, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host);
    advise(address, CU_MEM_ADVISE_UNSET_ACCESSED_BY, here);
    advise(address, CU_MEM_ADVISE_SET_ACCESSED_BY, host);
    expect_advice(address, 1, CU_DEVICE_CPU, CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU, none);
    advise(address, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here);
    advise(address, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, here);
    advise(address, CU_MEM_ADVISE_UNSET_ACCESSED_BY, host);
    expect_advice(address, 0, none, CU_MEM_LOCATION_TYPE_INVALID, none, none);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(address, BYTES, 77, device));
    IS_TRUE(cuMemAdvise(address + BYTES, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, device) != CUDA_SUCCESS);
    MUST(cuMemFree_v2(address));
}

/* What is told of a range is what all of its pages have in common. */
static void parts_have_advice_of_their_own(void)
{
    const uint64_t part = 2u << 20;
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUdeviceptr address;
    int told[4], places[4];

    MUST(cuMemAllocManaged(&address, 4 * part, CU_MEM_ATTACH_GLOBAL));
    EXPECT(CUDA_SUCCESS, cuMemAdvise_v2(address + part, part, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    EXPECT(CUDA_SUCCESS, cuMemAdvise_v2(address + 2 * part, 2 * part,
                                        CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
    for (unsigned i = 0; i < 4; i++) {
        MUST(cuMemRangeGetAttribute(&told[i], 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                    address + i * part, part));
        MUST(cuMemRangeGetAttribute(&places[i], 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                    address + i * part, part));
    }
    IS_TRUE(told[0] == 0 && told[1] == 1 && told[2] == 0 && told[3] == 0);
    IS_TRUE(places[0] == CU_DEVICE_INVALID && places[1] == CU_DEVICE_INVALID);
    IS_TRUE(places[2] == device && places[3] == device);
    MUST(cuMemRangeGetAttribute(told, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 4 * part));
    MUST(cuMemRangeGetAttribute(places, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                address + part, 2 * part));
    IS_TRUE(told[0] == 0 && places[0] == CU_DEVICE_INVALID);
    MUST(cuMemFree_v2(address));
}

/* Kernels and host use the memory under each advice, and find what is right. */
static void advice_changes_no_contents(void)
{
    static const CUmem_advise all[] = {
        CU_MEM_ADVISE_SET_READ_MOSTLY,          CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
        CU_MEM_ADVISE_SET_ACCESSED_BY,          CU_MEM_ADVISE_UNSET_READ_MOSTLY,
        CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, CU_MEM_ADVISE_UNSET_ACCESSED_BY};
    CUdeviceptr address;
    uint32_t *words = make_managed(&address), value = 1, n = WORDS, turns = 0, expected = 0;
    void *parameters[] = {&address, &value, &n, &turns};

    memset(words, 0, BYTES);
    for (unsigned i = 0; i < 2 * sizeof(all) / sizeof(*all); i++) {
        CUdevice where = i % 2 ? device : CU_DEVICE_CPU;

        EXPECT(CUDA_SUCCESS, cuMemAdvise(address, BYTES, all[i / 2], where));
        launch_one(get_kernel(kernels, "slow_add"), NULL, parameters);
        MUST(cuCtxSynchronize());
        IS_TRUE(all_are(words, expected + 1));
        launch_one(get_kernel(kernels, "slow_add"), NULL, parameters);
        MUST(cuCtxSynchronize());
        for (unsigned at = 0; at < WORDS; at++)
            words[at] += 10;
        expected += 12;
        IS_TRUE(all_are(words, expected));
    }
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

/* One after the other, with work of the stream that may use the memory in each. */
static void each_attachment_follows_each(void)
{
    static const unsigned modes[] = {CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST,
                                     CU_MEM_ATTACH_SINGLE};
    CUdeviceptr address;
    uint32_t *words = make_managed(&address), value = 1, n = WORDS, turns = 0, expected = 0;
    void *parameters[] = {&address, &value, &n, &turns};
    CUstream stream;

    memset(words, 0, BYTES);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 9; i++) {
        unsigned modes_of[] = {modes[i / 3], modes[i % 3]};

        for (unsigned k = 0; k < 2; k++) {
            MUST(cuStreamAttachMemAsync(stream, address, 0, modes_of[k]));
            MUST(cuStreamSynchronize(stream));
            if (modes_of[k] != CU_MEM_ATTACH_HOST)
                launch_one(get_kernel(kernels, "slow_add"), stream, parameters);
            expected += modes_of[k] != CU_MEM_ATTACH_HOST;
            MUST(cuStreamSynchronize(stream));
            words[0]++;
            words[WORDS - 1] += 0;
            IS_TRUE(words[0] == expected + 2 * i + k + 1 && words[WORDS - 1] == expected);
        }
    }
    MUST(cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE));
    MUST(cuStreamDestroy_v2(stream));
    launch_one(get_kernel(kernels, "slow_add"), NULL, parameters);
    MUST(cuCtxSynchronize());
    IS_TRUE(words[WORDS - 1] == expected + 1);
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

/* Eight words in each of four rows, and a box of them that goes there and back. */
static void batches_of_copies_of_arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {8, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    CUdeviceptr from = make_words(32, 5), to = make_words(32, 0);
    CUDA_MEMCPY3D_BATCH_OP there = {
        .src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = from, .rowLength = 8}}},
        .extent = {3, 2, 1},
        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
    };
    CUDA_MEMCPY3D_BATCH_OP back = there;
    CUstream stream;
    CUarray array;

    MUST(cuArrayCreate_v2(&array, &shape));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxSynchronize());
    there.dst.type = back.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    there.dst.op.array.array = back.src.op.array.array = array;
    there.dst.op.array.offset = back.src.op.array.offset = (CUoffset3D){5, 2, 0};
    back.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    back.dst.op.ptr.ptr = to;
    EXPECT(CUDA_SUCCESS, cuMemcpy3DBatchAsync_v2(1, &there, 0, stream));
    EXPECT(CUDA_SUCCESS, cuMemcpy3DBatchAsync_v2(1, &back, 0, stream));
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(to, 6, 5) && word_at(to + 6 * 4) == 0);
    there.dst.op.array.offset.x = 6;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &there, 0, stream));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuArrayDestroy(array));
    MUST(cuMemFree_v2(from));
    MUST(cuMemFree_v2(to));
}

int main(void)
{
    device = check_open();
    kernels = load_kernels();
    RUN(host_and_device_take_turns);
    RUN(advice_is_remembered);
    RUN(all_advice_is_taken_back);
    RUN(parts_have_advice_of_their_own);
    RUN(advice_changes_no_contents);
    RUN(memory_is_prefetched);
    RUN(memory_is_attached);
    RUN(each_attachment_follows_each);
    RUN(attributes_of_managed_memory);
    RUN(batches_of_copies);
    RUN(batches_of_copies_of_arrays);
    return check_close();
}
