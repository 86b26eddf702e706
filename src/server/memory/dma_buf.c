/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a client as a dma-buf, for network adapters. A dma-buf keeps released memory
 * alive, so it counts like other descriptors of memory.
 */
#include "attach.h"
#include "device_granule.h"
#include "fd.h"
#include "memory_state.h"
#include "server_dispatch.h"
#include "sock.h"
#include "vmm.h"

/* Host memory may replace a granule's memory for a while, and cannot become a dma-buf. */
static CUresult may_export_granule(struct session *session, struct granule *granule,
                                   uint64_t address, uint64_t size)
{
    if (granule->on_host || size > granule->size - (address - granule->address))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_granule_may_export(session, granule))
        return CUDA_ERROR_NOT_PERMITTED;
    granule->dma_buf = true;
    return CUDA_SUCCESS;
}

/* Memory of other clients and variables of modules cannot be exported. */
static CUresult may_export(struct session *session, struct granule *granule, uint64_t address,
                           uint64_t size)
{
    switch (granule->kind) {
    case GRANULE_DEVICE:
        return may_export_granule(session, granule, address, size);
    case GRANULE_MAPPED:
        return vmm_may_export(session, granule->part, address, size);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_range(struct session *session,
                            const struct wire_cuMemGetHandleForAddressRange *in,
                            const struct device **ret_device)
{
    const uint64_t flags = CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE;
    struct granule *granule = memory_granule_at(session, in->ptr);

    if (!granule || !in->size || in->flags & ~flags)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_device = session_device(session, granule->part);
    return may_export(session, granule, in->ptr, in->size);
}

static void log_refusal(struct session *session,
                        const struct wire_cuMemGetHandleForAddressRange *in, CUresult result)
{
    if (result == CUDA_ERROR_NOT_PERMITTED)
        session_log_error(session,
                          "cuMemGetHandleForAddressRange: it has a memory limit, and has had "
                          "descriptors of as much memory as the quota kept-memory says");
    else
        session_log_error(
            session,
            "cuMemGetHandleForAddressRange: %llu bytes at %#llx are not device memory "
            "of its own",
            (unsigned long long)in->size, (unsigned long long)in->ptr);
}

static CUresult make_dma_buf(struct session *session, const struct device *device,
                             const struct wire_cuMemGetHandleForAddressRange *in, int *ret_fd)
{
    CUresult result = session_enter(session, device);

    return result == CUDA_SUCCESS
               ? driver.cuMemGetHandleForAddressRange(
                     ret_fd, in->ptr, in->size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, in->flags)
               : result;
}

CUresult serve_cuMemGetHandleForAddressRange(struct session *session,
                                             const struct wire_cuMemGetHandleForAddressRange *in)
{
    struct socket_message message = {.kind = SOCKET_DMA_BUF, .value = in->ptr};
    const struct device *device;
    _cleanup_fd_ int fd = -1;

    if (!driver.cuMemGetHandleForAddressRange)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = check_range(session, in, &device);
    if (result != CUDA_SUCCESS) {
        log_refusal(session, in, result);
        return result;
    }
    result = make_dma_buf(session, device, in, &fd);
    if (result != CUDA_SUCCESS)
        return result;
    return sock_send(session->socket, &message, sizeof(message), &fd, 1)
               ? CUDA_ERROR_MPS_RPC_FAILURE
               : CUDA_SUCCESS;
}
