/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory as a dma-buf: its pages lie in memory files, of which Linux makes one. */
#include "soft_arena.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "udmabuf.h"

static bool is_in_pages(CUdeviceptr dptr, size_t size)
{
    return size && dptr % 4096 == 0 && size % 4096 == 0;
}

/* Of a range that one memory contains, but for what is rounded up to whole pages. */
static CUresult check_range(const struct memory *memory, CUdeviceptr dptr, size_t size)
{
    if (!memory || memory_is_managed(memory) || memory->pool ||
        size > memory_mapped_size(memory->size) - (dptr - memory->address))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_is_host(memory) || !udmabuf_is_there())
        return CUDA_ERROR_NOT_SUPPORTED;
    return memory->kind == MEMORY_MAPPED || memory_is_in_arena(memory) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

static int make_locked(const struct memory *memory, CUdeviceptr dptr, size_t size)
{
    uint64_t offset = dptr - memory->address;

    return memory->kind == MEMORY_MAPPED
               ? udmabuf_create(memory_mapped_file(memory), offset, size)
               : udmabuf_create(arena_fd_locked(), memory->arena_offset + offset, size);
}

CUresult soft_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                            CUmemRangeHandleType handleType,
                                            unsigned long long flags)
{
    struct context *context;
    SOFT_LOCKED;
    CUresult result = context_use_locked(&context);

    if (!handle || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || !is_in_pages(dptr, size) ||
        flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)
        return CUDA_ERROR_INVALID_VALUE;
    if (result)
        return result;
    const struct memory *memory = memory_find_locked(dptr);
    result = check_range(memory, dptr, size);
    if (result)
        return result;
    int fd = make_locked(memory, dptr, size);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)handle = fd;
    return CUDA_SUCCESS;
}
