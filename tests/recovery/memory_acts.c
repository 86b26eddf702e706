/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_acts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_prototypes.h"
#include "recovery_probe.h"

/* In the place of the last, so that it can be asked for often. */
CUresult act_allocate(void)
{
    static CUdeviceptr pointer;
    CUresult result = pointer ? cuMemFree_v2(pointer) : CUDA_SUCCESS;

    pointer = 0;
    return result != CUDA_SUCCESS ? result : cuMemAlloc_v2(&pointer, LARGE);
}

/* The flag in page-locked memory is what the program and the device both see. */
CUresult act_pinned(void)
{
    CUresult result = cuMemsetD32Async((CUdeviceptr)(uintptr_t)(program.flag + 1), 0x5a5a5a5a, 64,
                                       program.fields[0].stream);

    if (!result)
        result = cuStreamSynchronize(program.fields[0].stream);
    return result || program.flag[64] == 0x5a5a5a5a ? result : CUDA_ERROR_UNKNOWN;
}

#define REGISTERED (1u << 20)

static CUresult set_registered(uint32_t *memory)
{
    const uint32_t count = REGISTERED / sizeof(*memory);
    CUdeviceptr address;
    const uint32_t number = field_next_number();
    CUresult result = cuMemHostGetDevicePointer_v2(&address, memory, 0);

    if (!result)
        result = cuMemsetD32Async(address, number, count, program.fields[0].stream);
    if (!result)
        result = cuStreamSynchronize(program.fields[0].stream);
    return result || memory[count - 1] == number ? result : CUDA_ERROR_UNKNOWN;
}

/* Memory of the program's own that the device reaches. */
CUresult act_register(void)
{
    static uint32_t *memory;
    CUresult result = CUDA_SUCCESS;

    if (!memory) {
        memory = aligned_alloc(4096, REGISTERED);
        result = cuMemHostRegister_v2(memory, REGISTERED, 0);
    }
    return result ? result : set_registered(memory);
}

/* The same with memory that other processes may share. */
CUresult act_share(void)
{
    static uint32_t *memory;
    CUresult result = CUDA_SUCCESS;

    if (!memory) {
        int fd = memfd_create("shared", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, REGISTERED) < 0)
            return CUDA_ERROR_UNKNOWN;
        memory = mmap(NULL, REGISTERED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        result = cuMemHostRegister_v2(memory, REGISTERED, 0);
        close(fd);
    }
    return result ? result : set_registered(memory);
}

/* Managed memory: the program touches it before it makes any call, and leaves it to the device. */
CUresult act_managed(void)
{
    static struct field field;
    uint32_t *words = (uint32_t *)(uintptr_t)field.device;
    bool right = true;
    CUresult result = CUDA_SUCCESS;

    if (!field.device) {
        field.count = SMALL;
        field.expected = calloc(SMALL, 4);
        result = cuMemAllocManaged(&field.device, SMALL * 4, CU_MEM_ATTACH_GLOBAL);
        words = (uint32_t *)(uintptr_t)field.device;
        if (!result)
            memset(words, 0, SMALL * 4);
    }
    for (uint32_t i = 0; i < SMALL && !result && right; i++)
        right = words[i] == field.expected[i];
    for (uint32_t i = 0; i < SMALL && !result; i += 777)
        field.expected[i] = words[i] += 5;
    if (!result)
        result = field_step(&field);
    if (!result)
        result = cuCtxSynchronize();
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

/* From a pool, in the order of a stream. */
CUresult act_pool(void)
{
    static struct field field;
    bool right = true;
    CUresult result = CUDA_SUCCESS;

    if (!field.expected) {
        field.count = SMALL;
        field.expected = calloc(SMALL, 4);
        field.seen = malloc(SMALL * 4);
        result = cuMemAllocAsync(&field.device, SMALL * 4, program.fields[0].stream);
        if (!result)
            result = cuMemsetD32Async(field.device, 0, SMALL, program.fields[0].stream);
    }
    if (!result)
        result = cuStreamSynchronize(program.fields[0].stream);
    if (!result)
        result = field_check(&field, &right);
    if (!result)
        result = field_step(&field);
    if (!result)
        result = cuCtxSynchronize();
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

/* ---- memory of cuMemCreate ---- */

#define MAPPED (4u << 20)

static CUresult map_at(CUdeviceptr address, CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = cuMemMap(address, MAPPED, 0, handle, 0);

    return result ? result : cuMemSetAccess(address, MAPPED, &access, 1);
}

static CUresult create_memory(CUmemGenericAllocationHandle *ret_handle)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    return cuMemCreate(ret_handle, MAPPED, &prop, 0);
}

/* The same memory at two addresses: made here, and imported from its descriptor. */
static CUresult import_memory(CUmemGenericAllocationHandle made,
                              CUmemGenericAllocationHandle *ret_handle)
{
    int fd = -1;
    CUresult result =
        cuMemExportToShareableHandle(&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (!result)
        result = cuMemImportFromShareableHandle(ret_handle, (void *)(uintptr_t)fd,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    return result;
}

/* Between the two mappings are addresses that are reserved and not mapped. */
static CUresult make_mappings(struct field *field, CUdeviceptr *ret_imported)
{
    CUmemGenericAllocationHandle made, imported;
    CUdeviceptr base;
    CUresult result = cuMemAddressReserve(&base, 4 * MAPPED, 0, 0, 0);

    if (!result)
        result = create_memory(&made);
    if (!result)
        result = import_memory(made, &imported);
    if (!result)
        result = map_at(base, made);
    if (!result)
        result = map_at(base + 2 * MAPPED, imported);
    field->device = base;
    field->count = MAPPED / 4;
    field->expected = calloc(MAPPED, 1);
    field->seen = malloc(MAPPED);
    *ret_imported = base + 2 * MAPPED;
    return result ? result : cuMemsetD32_v2(base, 0, field->count);
}

/* What a kernel writes by the one address is read by the other, before and after. */
CUresult act_reserved(void)
{
    static struct field field;
    static CUdeviceptr imported;
    struct field other;
    bool right = true;
    CUresult result = field.expected ? CUDA_SUCCESS : make_mappings(&field, &imported);

    other = field;
    other.device = imported;
    if (!result)
        result = field_check(&other, &right);
    if (!result)
        result = field_step(&field);
    if (!result)
        result = cuCtxSynchronize();
    if (!result && right)
        result = field_check(&other, &right);
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

/* Memory that nothing maps is charged, and can still be mapped. */
CUresult act_unmapped(void)
{
    static CUmemGenericAllocationHandle handle;
    static CUdeviceptr base;
    CUresult result = CUDA_SUCCESS;

    if (!handle)
        result = create_memory(&handle);
    if (!result && !base)
        return cuMemAddressReserve(&base, MAPPED, 0, 0, 0);
    if (!result)
        result = map_at(base, handle);
    if (!result)
        result = cuMemsetD32_v2(base, 5, MAPPED / 4);
    return result ? result : cuMemUnmap(base, MAPPED);
}
