/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory as a dma-buf, by which network adapters reach it. The server has the driver make
 * it.
 */
#include <unistd.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_memory.h"
#include "client_prototypes.h"
#include "client_socket.h"
#include "wire_calls.h"

static bool is_in_pages(CUdeviceptr dptr, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return size && dptr % page == 0 && size % page == 0 && size <= UINT64_MAX - dptr;
}

/* Programs round what they have to whole pages, which may begin in front of an allocation and end
 * behind it. Whether all of the range is the program's own, the server says. */
static bool find_in_range(CUdeviceptr dptr, size_t size, struct allocation *ret_allocation)
{
    return address_map_find(dptr, ret_allocation) ||
           address_map_find(dptr + size - 1, ret_allocation);
}

static CUresult check_range(CUdeviceptr dptr, size_t size)
{
    struct allocation allocation;

    if (!find_in_range(dptr, size, &allocation) || allocation.kind->movable)
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation.kind->place != PLACE_DEVICE ||
        !device_attribute(allocation.context->device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult receive_dma_buf(const struct wire_cuMemGetHandleForAddressRange *in, int *ret_fd)
{
    _cleanup_mutex_ pthread_mutex_t *lock = call_mutex_hold(&client->socket_lock);
    CUresult result = wire_cuMemGetHandleForAddressRange(&client->channel, in);

    return result == CUDA_SUCCESS ? client_receive_descriptor(SOCKET_DMA_BUF, in->ptr, ret_fd)
                                  : result;
}

CUresult client_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                              CUmemRangeHandleType handleType,
                                              unsigned long long flags)
{
    const struct wire_cuMemGetHandleForAddressRange in = {
        .ptr = dptr, .size = size, .flags = flags};
    struct context *context;
    CUresult result = context_enter(&context);

    if (!handle || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || !is_in_pages(dptr, size) ||
        flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_range(dptr, size);
    return result == CUDA_SUCCESS ? receive_dma_buf(&in, handle) : result;
}
