/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and physical memory apart. A reservation fills up piece by piece, as PyTorch's
 * expandable segments do, and physical memory is at two addresses or a descriptor.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static CUdevice device;
static size_t piece; /* the size of one piece of physical memory */

static CUmemAllocationProp properties(CUmemAllocationHandleType type)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = type,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
    };
}

static CUmemGenericAllocationHandle create(CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop = properties(type);
    CUmemGenericAllocationHandle handle;

    MUST(cuMemCreate(&handle, piece, &prop, 0));
    return handle;
}

static CUresult allow(CUdeviceptr address, size_t size)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return cuMemSetAccess(address, size, &access, 1);
}

static void map(CUdeviceptr address, CUmemGenericAllocationHandle handle)
{
    MUST(cuMemMap(address, piece, 0, handle, 0));
    MUST(allow(address, piece));
}

/* The handle is let go at once: the mapping keeps the memory. */
static void map_new(CUdeviceptr address)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_HANDLE_TYPE_NONE);

    map(address, handle);
    MUST(cuMemRelease(handle));
}

static void grows_piece_by_piece(void)
{
    CUdeviceptr segment;

    MUST(cuMemAddressReserve(&segment, 16 * piece, 0, 0, 0));
    IS_TRUE(segment % piece == 0);
    for (int i = 0; i < 4; i++)
        map_new(segment + i * piece);
    MUST(cuMemsetD32_v2(segment, 7, 4 * piece / 4)); /* across all four */
    IS_TRUE(words_are(segment, 4 * piece / 4, 7));
    IS_TRUE(word_at(segment + 2 * piece - 4) == 7);

    MUST(cuMemUnmap(segment + piece, piece)); /* a hole, and filled again */
    map_new(segment + piece);
    MUST(cuMemsetD32_v2(segment + piece, 9, piece / 4));
    IS_TRUE(word_at(segment + piece - 4) == 7);
    IS_TRUE(word_at(segment + piece) == 9);
    IS_TRUE(word_at(segment + 2 * piece) == 7);

    MUST(cuMemUnmap(segment, 4 * piece));
    MUST(cuMemAddressFree(segment, 16 * piece));
}

/* A wish is only a wish: where the program has memory already, it gets another place, or, as from
 * NVIDIA's driver, none. */
static void not_where_something_is(void)
{
    CUdeviceptr first, wished;
    void *mine;

    MUST(cuMemAddressReserve(&first, 4 * piece, 0, 0, 0));
    MUST(cuMemAddressFree(first, 4 * piece));
    mine = mmap((void *)(uintptr_t)first, piece, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IS_TRUE(mine != MAP_FAILED);
    memset(mine, 3, piece);
    if (cuMemAddressReserve(&wished, 4 * piece, 0, (uintptr_t)mine, 0) != CUDA_SUCCESS)
        MUST(cuMemAddressReserve(&wished, 4 * piece, 0, 0, 0));
    IS_TRUE(wished + 4 * piece <= (uintptr_t)mine || wished >= (uintptr_t)mine + piece);
    map_new(wished);
    MUST(cuMemcpyHtoD_v2(wished, mine, piece));
    IS_TRUE(word_at(wished) == 0x03030303);
    MUST(cuMemUnmap(wished, piece));
    MUST(cuMemAddressFree(wished, 4 * piece));
    munmap(mine, piece);
}

static void one_memory_at_two_addresses(void)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_HANDLE_TYPE_NONE), again = 0;
    CUdeviceptr segment;

    MUST(cuMemAddressReserve(&segment, 2 * piece, 0, 0, 0));
    map(segment, handle);
    map(segment + piece, handle);
    MUST(cuMemsetD32_v2(segment, 5, 16));
    IS_TRUE(words_are(segment + piece, 16, 5));
    MUST(cuMemRelease(handle));
    EXPECT(CUDA_SUCCESS, cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(segment + 64)));
    MUST(cuMemUnmap(segment, 2 * piece));
    map(segment, again);
    IS_TRUE(words_are(segment, 16, 5));
    MUST(cuMemRelease(again));
    MUST(cuMemUnmap(segment, piece));
    MUST(cuMemAddressFree(segment, 2 * piece));
}

static void as_a_descriptor(void)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), twin;
    CUmemAllocationProp prop = {0};
    CUdeviceptr segment;
    int fd = -1;

    MUST(cuMemAddressReserve(&segment, 2 * piece, 0, 0, 0));
    map(segment, handle);
    MUST(cuMemsetD32_v2(segment, 11, 16));
    MUST(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    IS_TRUE(fd >= 0);
    MUST(cuMemImportFromShareableHandle(&twin, (void *)(uintptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    EXPECT(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&prop, twin));
    IS_TRUE(prop.location.id == device);
    MUST(cuMemUnmap(segment, piece));
    MUST(cuMemRelease(handle));
    map(segment + piece, twin);
    IS_TRUE(words_are(segment + piece, 16, 11));
    MUST(cuMemUnmap(segment + piece, piece));
    MUST(cuMemRelease(twin));
    MUST(cuMemAddressFree(segment, 2 * piece));
}

static void access_is_told(void)
{
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemGenericAllocationHandle handle = create(CU_MEM_HANDLE_TYPE_NONE);
    unsigned long long flags = 99;
    CUdeviceptr segment;

    MUST(cuMemAddressReserve(&segment, piece, 0, 0, 0));
    MUST(cuMemMap(segment, piece, 0, handle, 0));
    MUST(allow(segment, piece));
    EXPECT(CUDA_SUCCESS, cuMemGetAccess(&flags, &here, segment));
    IS_TRUE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST(cuMemUnmap(segment, piece));
    MUST(cuMemRelease(handle));
    MUST(cuMemAddressFree(segment, piece));
}

static void kernels_reach_it(void)
{
    CUmodule module = load_kernels();
    CUfunction fill = get_kernel(module, "fill");
    CUdeviceptr segment, words;
    uint32_t count = 256, value = 3;
    void *parameters[] = {&words, &value, &count};

    MUST(cuMemAddressReserve(&segment, 2 * piece, 0, 0, 0));
    map_new(segment);
    map_new(segment + piece);
    words = segment + piece - count / 2 * 4; /* half in each piece */
    launch_one(fill, NULL, parameters);
    IS_TRUE(words_are(words, count, value));
    MUST(cuMemUnmap(segment, 2 * piece));
    MUST(cuMemAddressFree(segment, 2 * piece));
    MUST(cuModuleUnload(module));
}

static void mistakes(void)
{
    CUmemGenericAllocationHandle handle = create(CU_MEM_HANDLE_TYPE_NONE);
    CUdeviceptr segment, other = 0;
    CUmemAllocationProp prop = properties(CU_MEM_HANDLE_TYPE_NONE);

    MUST(cuMemAddressReserve(&segment, 2 * piece, 0, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, 0, 0, 0, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, piece + 1, &prop, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, allow(segment, piece)); /* nothing is mapped */
    MUST(cuMemMap(segment, piece, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(segment, piece, 0, handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(segment, piece / 2));
    MUST(cuMemUnmap(segment, piece));
    MUST(cuMemRelease(handle));
    MUST(cuMemAddressFree(segment, 2 * piece));
}

/* NCCL asks for this before it tries to make memory of a NUMA node, which it can do without. */
static void granularity_of_host_memory(void)
{
    CUmemAllocationProp prop = properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    size_t granularity = 0;

    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.location.id = 0;
    EXPECT(CUDA_SUCCESS,
           cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    IS_TRUE(granularity > 0 && granularity % 4096 == 0);
}

int main(void)
{
    CUmemAllocationProp prop;
    int supported = 0;

    device = check_open();
    MUST(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                              device));
    IS_TRUE(supported);
    prop = properties(CU_MEM_HANDLE_TYPE_NONE);
    MUST(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    RUN(grows_piece_by_piece);
    RUN(not_where_something_is);
    RUN(one_memory_at_two_addresses);
    RUN(as_a_descriptor);
    RUN(access_is_told);
    RUN(kernels_reach_it);
    RUN(granularity_of_host_memory);
    RUN(mistakes);
    return check_close();
}
