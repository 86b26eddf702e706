/* SPDX-License-Identifier: Apache-2.0 */
/* See ipc_calls.h. */
#include "ipc_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device_sync.h"
#include "fd.h"
#include "ipc_file.h"
#include "shm.h"
#include "soft_arena.h"
#include "soft_context.h"
#include "soft_memory.h"

/* An allocation of another process that is open here. */
struct ipc_import {
    struct list link;
    struct ipc_token token;
    struct memory *memory;
    unsigned opens;
    bool of_pool;
};

static struct list imports = {&imports, &imports};

/* ---- naming ---- */

static CUresult name_locked(struct memory *memory)
{
    struct ipc_slot *slot;

    if (memory->ipc_slot >= 0)
        return CUDA_SUCCESS;
    memory->ipc_slot = ipc_slot_take_locked(&slot);
    if (memory->ipc_slot < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    slot->range = (struct ipc_range){.fd = arena_fd_locked(),
                                     .device = memory->device->number,
                                     .offset = memory->arena_offset,
                                     .size = memory->size};
    __atomic_store_n(&slot->kind, IPC_MEMORY, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult ipc_name_locked(struct memory *memory, void *ret_handle)
{
    CUresult result = name_locked(memory);

    if (!result)
        ipc_handle_write(ret_handle, IPC_MEMORY, memory->ipc_slot);
    return result;
}

CUresult soft_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct memory *memory;
    struct context *context;
    CUresult result;

    SOFT_LOCKED;
    result = context_use_locked(&context);
    if (result)
        return result;
    memory = memory_find_locked(dptr);
    if (!memory || !memory_is_in_arena(memory) || memory->pool)
        return CUDA_ERROR_INVALID_VALUE;
    return ipc_name_locked(memory, pHandle);
}

/* ---- opening ---- */

static bool range_fits(const struct ipc_range *range)
{
    return range->size && range->size <= INT64_MAX && range->offset <= INT64_MAX - range->size &&
           range->offset % 4096 == 0;
}

/* The other process may write the slot while it is looked at, so it is copied first. */
static bool read_range(const struct ipc_handle *handle, struct ipc_range *ret_range)
{
    struct ipc_slot *slot = ipc_slot_map(handle);

    if (!slot)
        return false;
    memcpy(ret_range, &slot->range, sizeof(*ret_range));
    ipc_slot_unmap(slot);
    return range_fits(ret_range);
}

static void *map_range(const struct ipc_handle *handle, const struct ipc_range *range)
{
    _cleanup_fd_ int fd = ipc_open(handle, range->fd);
    void *pages;

    if (fd < 0 || shm_check(fd, range->offset + range->size))
        return NULL;
    pages = mmap(NULL, memory_mapped_size(range->size), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_NORESERVE, fd, (off_t)range->offset);
    if (pages == MAP_FAILED)
        return NULL;
    madvise(pages, memory_mapped_size(range->size), MADV_DONTFORK);
    return pages;
}

static struct device *device_with_number(unsigned number)
{
    for (unsigned i = 0; i < devices_count(); i++)
        if (device_get((CUdevice)i)->number == number)
            return device_get((CUdevice)i);
    return NULL;
}

static CUresult enter_locked(struct context *context, void *pages, const struct ipc_range *range,
                             struct memory **ret_memory)
{
    struct device *device = device_with_number(range->device);
    CUresult result;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    result = memory_enter_locked(context, MEMORY_IMPORTED, (uintptr_t)pages, range->size,
                                 SG_READ | SG_WRITE, ret_memory);
    if (!result)
        (*ret_memory)->device = device;
    return result;
}

static CUresult import_locked(struct context *context, const struct ipc_handle *handle,
                              struct ipc_import **ret_import)
{
    struct ipc_import *import;
    struct ipc_range range;
    struct memory *memory;
    void *pages = NULL;
    CUresult result;

    if (read_range(handle, &range))
        pages = map_range(handle, &range);
    if (!pages)
        return CUDA_ERROR_INVALID_VALUE;
    import = calloc(1, sizeof(*import));
    result = import ? enter_locked(context, pages, &range, &memory) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        munmap(pages, memory_mapped_size(range.size));
        free(import);
        return result;
    }
    import->token = handle->token;
    import->memory = memory;
    memory->import = import;
    list_append(&imports, &import->link);
    *ret_import = import;
    return CUDA_SUCCESS;
}

static struct ipc_import *find_import_locked(const struct ipc_token *token)
{
    list_for_each (struct ipc_import, import, &imports, link) {
        if (memcmp(&import->token, token, sizeof(*token)) == 0)
            return import;
    }
    return NULL;
}

CUresult ipc_open_locked(struct context *context, const void *handle, bool of_pool,
                         CUdeviceptr *ret_address)
{
    struct ipc_import *import;
    struct ipc_handle name;
    CUresult result = ipc_handle_read(handle, IPC_MEMORY, &name);

    if (result)
        return result;
    import = find_import_locked(&name.token);
    if (!import)
        result = import_locked(context, &name, &import);
    if (result)
        return result;
    import->opens++;
    import->of_pool = of_pool;
    *ret_address = import->memory->address;
    return CUDA_SUCCESS;
}

CUresult soft_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct context *context;
    CUresult result;

    if (Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    result = context_use_locked(&context);
    return result ? result : ipc_open_locked(context, &handle, false, pdptr);
}

bool ipc_is_of_pool_locked(const struct memory *memory)
{
    return memory->import && memory->import->of_pool;
}

bool ipc_is_last_open_locked(struct memory *memory)
{
    return !memory->import || --memory->import->opens == 0;
}

static struct memory *imported_at_locked(CUdeviceptr address)
{
    struct memory *memory = memory_find_locked(address);

    return memory && memory->import && !memory->import->of_pool && memory->address == address
               ? memory
               : NULL;
}

CUresult soft_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct memory *memory;
    struct context *context;
    CUresult result;
    SOFT_LOCKED;

    result = context_use_locked(&context);
    if (result)
        return result;
    memory = imported_at_locked(dptr);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    result = device_sync_locked(memory->context);
    memory = imported_at_locked(dptr);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    if (ipc_is_last_open_locked(memory))
        memory_free_locked(memory);
    return result;
}

void ipc_forget_memory_locked(struct memory *memory)
{
    if (memory->ipc_slot >= 0)
        ipc_slot_give_locked(memory->ipc_slot);
    if (!memory->import)
        return;
    list_remove(&memory->import->link);
    free(memory->import);
}
