/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory as dma-bufs, by which network adapters reach it. Where a device has none, every
 * call says so, and the program prints the same.
 */
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"

#define MIB ((size_t)1 << 20)

static CUdevice device;
static int supported;
static size_t page;

static int attribute(CUdevice_attribute which)
{
    int value = 0;

    MUST(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static CUresult ask(int *fd, CUdeviceptr address, size_t size)
{
    return cuMemGetHandleForAddressRange(fd, address, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

/* Linux says of a dma-buf who has made it. */
static bool is_dma_buf(int fd)
{
    char path[64], line[256];
    bool found = false;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        found |= strncmp(line, "exp_name:", 9) == 0;
    if (file)
        fclose(file);
    return found;
}

/* One is made of all of these bytes, or there are none on this device. */
static void expect_dma_buf(CUdeviceptr address, size_t size)
{
    int fd = -1;

    EXPECT(supported ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED, ask(&fd, address, size));
    if (!supported)
        return;
    IS_TRUE(fd >= 0 && is_dma_buf(fd));
    IS_TRUE(lseek(fd, 0, SEEK_END) == (off_t)size);
    IS_TRUE(close(fd) == 0);
}

static void of_an_allocation(void)
{
    CUdeviceptr memory;

    MUST(cuMemAlloc_v2(&memory, 16 * MIB));
    IS_TRUE(memory % page == 0);
    expect_dma_buf(memory, 16 * MIB);
    expect_dma_buf(memory + 5 * page, 3 * page);
    MUST(cuMemFree_v2(memory));
}

/* As network libraries do, who are given the memory of programs. */
static void rounded_to_pages(void)
{
    CUdeviceptr memory;

    MUST(cuMemAlloc_v2(&memory, 16 * MIB - 100));
    expect_dma_buf(memory, 16 * MIB);
    MUST(cuMemFree_v2(memory));
}

static CUmemAllocationProp properties(void)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
    };

    prop.allocFlags.gpuDirectRDMACapable =
        attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
    return prop;
}

static void of_a_mapping(void)
{
    const CUmemAllocationProp prop = properties();
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr segment;
    size_t piece = 0;
    int fd = -1;

    MUST(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    MUST(cuMemAddressReserve(&segment, 2 * piece, 0, 0, 0));
    MUST(cuMemCreate(&handle, piece, &prop, 0));
    MUST(cuMemMap(segment, piece, 0, handle, 0));
    MUST(cuMemSetAccess(segment, piece, &access, 1));
    MUST(cuMemRelease(handle));
    expect_dma_buf(segment, piece);
    expect_dma_buf(segment + page, piece - page);
    IS_TRUE(ask(&fd, segment, 2 * piece) != CUDA_SUCCESS); /* nothing is mapped there */
    MUST(cuMemUnmap(segment, piece));
    MUST(cuMemAddressFree(segment, 2 * piece));
}

/* It is used and freed as any other while there is a dma-buf of it. */
static void memory_stays_usable(void)
{
    CUdeviceptr words = make_words(MIB, 7);
    int fd = -1;

    IS_TRUE(ask(&fd, words, MIB * 4) == (supported ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED));
    MUST(cuMemsetD32_v2(words, 8, MIB));
    IS_TRUE(words_are(words, MIB, 8));
    MUST(cuMemFree_v2(words));
    if (fd >= 0)
        close(fd);
}

static void mistakes(void)
{
    CUdeviceptr memory;
    int fd = -1;

    MUST(cuMemAlloc_v2(&memory, 16 * MIB));
    IS_TRUE(ask(NULL, memory, page) != CUDA_SUCCESS);
    IS_TRUE(ask(&fd, memory, 0) != CUDA_SUCCESS);
    IS_TRUE(ask(&fd, memory + 256, page) != CUDA_SUCCESS);
    IS_TRUE(ask(&fd, memory, page + 256) != CUDA_SUCCESS);
    IS_TRUE(ask(&fd, memory, (size_t)1 << 46) != CUDA_SUCCESS);
    IS_TRUE(ask(&fd, 0x10000, page) != CUDA_SUCCESS);
    IS_TRUE(cuMemGetHandleForAddressRange(&fd, memory, page, 7, 0) != CUDA_SUCCESS);
    IS_TRUE(cuMemGetHandleForAddressRange(&fd, memory, page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                          1u << 9) != CUDA_SUCCESS);
    IS_TRUE(fd == -1);
    MUST(cuMemFree_v2(memory));
}

static void not_of_managed_memory(void)
{
    CUdeviceptr memory;
    int fd = -1;

    MUST(cuMemAllocManaged(&memory, MIB, CU_MEM_ATTACH_GLOBAL));
    IS_TRUE(ask(&fd, memory, MIB) != CUDA_SUCCESS && fd == -1);
    MUST(cuMemFree_v2(memory));
}

int main(void)
{
    device = check_open();
    page = (size_t)sysconf(_SC_PAGESIZE);
    supported = attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    RUN(of_an_allocation);
    RUN(rounded_to_pages);
    RUN(of_a_mapping);
    RUN(memory_stays_usable);
    RUN(mistakes);
    RUN(not_of_managed_memory);
    return check_close();
}
