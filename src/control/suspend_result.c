/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend_result.h. docs/troubleshooting.md has the remedies at length. */
#include "suspend_result.h"

#include <stddef.h>

const char *suspend_result_text(int result)
{
    switch (result) {
    case SUSPEND_OK:
        return "done";
    case SUSPEND_NO_CLIENT:
        return "the program has ended, or has moved to another server";
    case SUSPEND_BUSY:
        return "it has not been idle for a moment, so it goes on; a kernel that waits for a later "
               "command, or a callback, may keep it busy";
    case SUSPEND_ARRAYS:
        return "it has arrays, or textures and surfaces on them, which stay on the device";
    case SUSPEND_ALLOCATIONS:
        return "it shares memory of cuMemCreate with another process, by "
               "cuMemExportToShareableHandle";
    case SUSPEND_SHARED:
        return "it shares memory with another process by CUDA IPC";
    case SUSPEND_DMA_BUF:
        return "it has passed memory to a network adapter as a dma-buf";
    case SUSPEND_POOL_FULL:
        return "the host memory for suspended programs is full; the quota swap-memory bounds it "
               "(funnel limit --quota swap-memory=SIZE)";
    case SUSPEND_FAILED:
        return "the driver has refused it; server.log names its error";
    case SUSPEND_NO_MEMORY:
        return "the device has too little free memory, so it stays suspended; end or suspend "
               "another program first";
    case SUSPEND_ALREADY:
        return "it is suspended already";
    case SUSPEND_NOT:
        return "it is not suspended";
    case SUSPEND_FILE_FULL:
        return "the file system of the directory is full, or a quota of it is reached";
    case SUSPEND_FILE_FAILED:
        return "the file for its memory cannot be written or read; server.log names the error";
    case SUSPEND_FILE_DAMAGED:
        return "the file with its memory is not as it was written, so it stays suspended";
    case SUSPEND_FILE_KIND:
        return "the directory is not on a disk of this machine; ext4, xfs, btrfs, f2fs, zfs and "
               "tmpfs can be used";
    case SUSPEND_NOT_KEPT:
        return "it has memory without a descriptor of its own, which --detach would lose; "
               "checkpoint --stop keeps it. Under a memory limit the quota kept-memory says of how "
               "much a program gets descriptors";
    case SUSPEND_MODULES:
        return "it has modules with variables, or whose code allocates or calls functions through "
               "pointers, which --detach would lose; checkpoint --stop keeps them";
    case SUSPEND_REPLACED:
        return "another order for it has come meanwhile";
    case SUSPEND_PENDING:
        return "another order for it is not done yet; try again when it is";
    case SUSPEND_SEVERAL:
        return "the process is several clients; name one by its ID";
    default:
        return NULL;
    }
}
