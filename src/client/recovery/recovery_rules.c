/* SPDX-License-Identifier: Apache-2.0 */
/* See recovery_rules.h. The compiler insists that every command is named; an unknown number binds.
 */
#include "recovery_rules.h"

#include <string.h>

#include "cuda_error.h"
#include "wire_calls.h"

enum recovery_rule recovery_rule(uint32_t op)
{
    switch ((enum wire_op)op) {
    case WIRE_cuStreamWaitEvent:
    case WIRE_cuEventRecordWithFlags:
    case WIRE_cuLaunchKernelEx:
    case WIRE_cuMemcpyAsync:
    case WIRE_cuMemcpyHtoDAsync_v2:
    case WIRE_cuMemcpy3DAsync_v2:
    case WIRE_fnMemset:
    case WIRE_fnFence:
    case WIRE_fnCopyUp:
    case WIRE_fnCopyBatch:
    case WIRE_fnWake:
    case WIRE_cuLaunchHostFunc:
    case WIRE_cuStreamWriteValue32_v2:
    case WIRE_cuStreamWriteValue64_v2:
    case WIRE_cuStreamWaitValue32_v2:
    case WIRE_cuStreamWaitValue64_v2:
    case WIRE_cuFuncSetCacheConfig:
    case WIRE_fnGranuleMove:
    case WIRE_cuGraphUpload:
    case WIRE_cuGraphLaunch:
    case WIRE_fnNote:
        return RECOVERY_WORK;
    case WIRE_cuLibraryGetKernel:
    case WIRE_fnKernelFind:
    case WIRE_cuLibraryEnumerateKernels:
    case WIRE_cuFuncGetAttribute:
    case WIRE_cuFuncSetAttribute:
    case WIRE_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags:
    case WIRE_cuOccupancyAvailableDynamicSMemPerBlock:
    case WIRE_cuOccupancyMaxActiveClusters:
    case WIRE_cuOccupancyMaxPotentialClusterSize:
    case WIRE_cuEventElapsedTime_v2:
    case WIRE_cuEventQuery:
    case WIRE_cuMemGetInfo_v2:
    case WIRE_cuDeviceGetHostAtomicCapabilities:
    case WIRE_cuDeviceGetP2PAtomicCapabilities:
    case WIRE_fnGranuleCreate:
    case WIRE_fnHostGranuleCreate:
    case WIRE_fnImageFind:
    case WIRE_fnReferenceFind:
    case WIRE_fnReason:
    case WIRE_fnTensorMap:
    case WIRE_fnShareAsk:
    case WIRE_fnPrintfCollect:
        return RECOVERY_ASKS;
    case WIRE_cuStreamCreateWithPriority:
    case WIRE_cuEventCreate:
    case WIRE_fnFunctionEnter:
    case WIRE_fnGranuleRelease:
    case WIRE_fnUnreserve:
    case WIRE_cuMemRelease:
    case WIRE_cuMemUnmap:
    case WIRE_fnMove:
    case WIRE_fnRange:
    case WIRE_fnProfile:
    case WIRE_fnCorrelation:
    case WIRE_fnPrintfTake:
        return RECOVERY_NEEDLESS;
    case WIRE_cuStreamDestroy_v2:
    case WIRE_cuEventDestroy_v2:
    case WIRE_cuLibraryUnload:
    case WIRE_cuGraphExecDestroy:
    case WIRE_cuLinkDestroy:
    case WIRE_fnShareDestroy:
        return RECOVERY_ENDS;
    case WIRE_cuLibraryLoadData:
    case WIRE_fnHostGranuleBring:
        return RECOVERY_REPEATS;
    case WIRE_fnGranuleAdopt:
    case WIRE_fnGranulesAdopted:
    case WIRE_fnHostGranuleAdopt:
    case WIRE_fnHostFileMap:
    case WIRE_fnReserve:
    case WIRE_cuMemCreate:
    case WIRE_fnAllocationAdopt:
    case WIRE_cuMemMap:
    case WIRE_cuMemSetAccess:
    case WIRE_cuMemExportToShareableHandle:
    case WIRE_cuMemGetHandleForAddressRange:
    case WIRE_cuMemImportFromShareableHandle:
    case WIRE_cuLibraryGetGlobal:
    case WIRE_cuCtxSetLimit:
    case WIRE_cuCtxEnablePeerAccess:
    case WIRE_fnGraphCreate:
    case WIRE_fnGraphKernelNode:
    case WIRE_fnGraphCopyNode:
    case WIRE_fnGraphMemsetNode:
    case WIRE_fnGraphConditionalNode:
    case WIRE_fnGraphEdges:
    case WIRE_cuGraphNodeSetEnabled:
    case WIRE_cuGraphInstantiateWithFlags:
    case WIRE_fnArrayCopy:
    case WIRE_cuMemcpyAtoA_v2:
    case WIRE_cuArrayDestroy:
    case WIRE_cuTexObjectDestroy:
    case WIRE_cuArray3DCreate_v2:
    case WIRE_fnArrayTexture:
    case WIRE_fnMemoryTexture:
    case WIRE_cuMipmappedArrayCreate:
    case WIRE_cuMipmappedArrayGetLevel:
    case WIRE_fnArraySurface:
    case WIRE_fnArrayReference:
    case WIRE_fnMemoryReference:
    case WIRE_cuLinkCreate_v2:
    case WIRE_cuLinkAddData_v2:
    case WIRE_cuLinkComplete:
    case WIRE_fnShareCreate:
        return RECOVERY_STAYS;
    case WIRE_fnShareCreateOf:
    case WIRE_cuIpcGetMemHandle:
    case WIRE_fnIpcWithdraw:
    case WIRE_cuIpcOpenMemHandle_v2:
    case WIRE_cuIpcCloseMemHandle:
    case WIRE_cuIpcGetEventHandle:
    case WIRE_cuIpcOpenEventHandle:
    case WIRE_fnLibraryJoin:
        break;
    }
    return RECOVERY_BINDS;
}

bool recovery_is_possible(CUresult error)
{
    if (error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_NVLINK_UNCORRECTABLE)
        return false;
    return error == CUDA_SUCCESS || cuda_error_is_fatal(error);
}

bool recovery_allows(const uint64_t used[CHANNEL_OPS / 64])
{
    for (uint32_t op = 0; op < CHANNEL_OPS; op++)
        if (used[op / 64] >> op % 64 & 1 && recovery_rule(op) == RECOVERY_BINDS)
            return false;
    return true;
}

bool recovery_may_ask_again(struct recovery_asked *asked, uint64_t now)
{
    uint64_t *oldest = &asked->at[asked->next];

    if (*oldest && now - *oldest < RECOVERY_ASKED_NS)
        return false;
    *oldest = now;
    asked->next = (asked->next + 1) % RECOVERY_ASKED_MAX;
    return true;
}

static uint32_t slot_bit(uint32_t kind)
{
    int slot = channel_kind_slot(kind);

    return slot == CHANNEL_NO_SLOT ? 0 : 1u << slot % 32;
}

bool recovery_sift(unsigned char *messages, uint32_t size, uint32_t *ret_size,
                   struct recovery_slots *ret_slots)
{
    struct recovery_slots slots = {0};
    uint32_t kept = 0;
    unsigned work = 0, ends = 0;

    for (uint32_t at = 0; at < size;) {
        struct ring_message header;

        memcpy(&header, messages + at, sizeof(header));
        if (header.size < sizeof(header) || header.size > size - at)
            return false;
        enum recovery_rule rule = recovery_rule(channel_kind_op(header.kind));
        switch (rule) {
        case RECOVERY_WORK:
        case RECOVERY_ASKS:
            memmove(messages + kept, messages + at, header.size);
            kept += header.size;
            work += rule == RECOVERY_WORK;
            slots.sent_again |= slot_bit(header.kind);
            break;
        case RECOVERY_REPEATS:
            slots.repeated |= slot_bit(header.kind);
            break;
        case RECOVERY_NEEDLESS:
            break;
        case RECOVERY_ENDS:
            ends++;
            break;
        default:
            return false;
        }
        at += header.size;
    }
    *ret_size = kept;
    *ret_slots = slots;
    /* Work on an object that the program has ended since then cannot be done again. */
    return !work || !ends;
}
