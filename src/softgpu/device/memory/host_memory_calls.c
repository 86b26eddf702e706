/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that kernels can access: allocated here, or registered by the program.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "device_sync.h"
#include "soft_context.h"
#include "soft_memory.h"
#include "soft_stream.h"

#define KNOWN_ALLOC_FLAGS \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define KNOWN_REGISTER_FLAGS                                                                    \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY | \
     CU_MEMHOSTREGISTER_READ_ONLY)

/* These calls may wait for all streams. */
static CUresult use_unless_captured_locked(struct context **ret_context)
{
    CUresult result = context_use_locked(ret_context);

    return result ? result : capture_unsafe_locked();
}

CUresult soft_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct context *context;
    struct memory *memory;

    if (Flags & ~KNOWN_ALLOC_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = use_unless_captured_locked(&context);

    if (!result && bytesize == 0) {
        *pp = NULL; /* unlike cuMemAlloc */
        return CUDA_SUCCESS;
    }
    if (!result)
        result = memory_allocate_locked(context, MEMORY_HOST, bytesize, &memory);
    if (result)
        return result;
    memory->flags = Flags | CU_MEMHOSTALLOC_DEVICEMAP;
    *pp = (void *)memory->address;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return soft_cuMemHostAlloc(pp, bytesize, 0);
}

static CUresult end_host_memory(const void *p, enum memory_kind kind, CUresult otherwise)
{
    struct context *context;
    struct memory *memory;
    SOFT_LOCKED;
    CUresult result = use_unless_captured_locked(&context);

    if (result)
        return result;
    memory = memory_find_locked((uintptr_t)p);
    if (memory && (memory->kind != kind || memory->pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory || memory->address != (uintptr_t)p)
        return otherwise;
    result = device_sync_locked(memory->context);
    memory = memory_find_locked((uintptr_t)p);
    if (!memory)
        return otherwise;
    memory_free_locked(memory);
    return result;
}

CUresult soft_cuMemFreeHost(void *p)
{
    return p ? end_host_memory(p, MEMORY_HOST, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

/* Asks for nothing but an error where there is a hole. */
static bool is_mapped(uintptr_t start, size_t size)
{
    uintptr_t first = start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

    return msync((void *)first, start + size - first, MS_ASYNC) == 0;
}

CUresult soft_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct context *context;
    struct memory *memory;
    unsigned access = Flags & CU_MEMHOSTREGISTER_READ_ONLY ? SG_READ : SG_READ | SG_WRITE;

    if (!p || bytesize == 0 || (Flags & ~KNOWN_REGISTER_FLAGS) ||
        bytesize > UINTPTR_MAX - (uintptr_t)p || !is_mapped((uintptr_t)p, bytesize))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_PERMITTED;
    SOFT_LOCKED;
    CUresult result = use_unless_captured_locked(&context);

    if (result)
        return result;
    memory = memory_find_locked((uintptr_t)p);
    if (memory && memory->kind != MEMORY_REGISTERED)
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_overlaps_locked((uintptr_t)p, bytesize))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    result =
        memory_enter_locked(context, MEMORY_REGISTERED, (uintptr_t)p, bytesize, access, &memory);
    if (!result)
        memory->flags = Flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    return result;
}

CUresult soft_cuMemHostUnregister(void *p)
{
    return p ? end_host_memory(p, MEMORY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
             : CUDA_ERROR_INVALID_VALUE;
}

static CUresult host_memory_at_locked(const void *p, struct memory **ret_memory)
{
    struct memory *memory = memory_find_locked((uintptr_t)p);

    if (!memory || !memory_is_host(memory) || memory->pool)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_memory = memory;
    return CUDA_SUCCESS;
}

CUresult soft_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct memory *memory;

    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    SOFT_LOCKED;
    CUresult result = host_memory_at_locked(p, &memory);

    if (!result)
        *pdptr = (uintptr_t)p;
    return result;
}

CUresult soft_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct memory *memory;

    SOFT_LOCKED;
    CUresult result = host_memory_at_locked(p, &memory);

    if (!result)
        *pFlags = memory->flags;
    return result;
}
