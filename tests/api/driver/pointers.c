/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver tells of a pointer.
 */
#include "check.h"

#include <stdlib.h>

static CUcontext context;

static void device_memory(void)
{
    CUdeviceptr words = make_words(100, 0), pointer = 0;
    CUcontext of_pointer = NULL;
    CUmemorytype type = (CUmemorytype)0;
    unsigned long long id = 0, other_id = 0;
    int managed = 9, ordinal = 9;

    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, words + 40));
    IS_TRUE(type == CU_MEMORYTYPE_DEVICE);
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_CONTEXT, words + 40));
    IS_TRUE(of_pointer == context);
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, words + 40));
    IS_TRUE(pointer == words + 40);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, words));
    IS_TRUE(managed == 0);
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, words));
    IS_TRUE(ordinal == 0);
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, words + 40));
    IS_TRUE(pointer == words);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, words));
    MUST(cuMemFree_v2(words));
    words = make_words(100, 0);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&other_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, words));
    IS_TRUE(id != other_id);
    MUST(cuMemFree_v2(words));
}

static void pinned_memory(void)
{
    CUmemorytype type = (CUmemorytype)0;
    void *pinned, *host = NULL;
    CUdeviceptr address, pointer = 0, expected = 0;

    MUST(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    address = (CUdeviceptr)(uintptr_t)pinned;
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    IS_TRUE(type == CU_MEMORYTYPE_HOST);
    EXPECT(CUDA_SUCCESS, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address));
    IS_TRUE(host == pinned);
    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address));
    MUST(cuMemHostGetDevicePointer_v2(&expected, pinned, 0));
    IS_TRUE(pointer == expected);
    MUST(cuMemFreeHost(pinned));
}

static void unknown_memory(void)
{
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    CUcontext of_pointer = context;
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    CUdeviceptr pointer = 1;
    void *host = NULL, *mine = malloc(16);
    unsigned managed = 9;
    int ordinal = 9;
    void *values[] = {&of_pointer, &type, &pointer, &host, &managed, &ordinal};

    EXPECT(CUDA_SUCCESS,
           cuPointerGetAttributes(6, attributes, values, (CUdeviceptr)(uintptr_t)mine));
    IS_TRUE(of_pointer == NULL && type == 0 && pointer == 0 && managed == 0 && ordinal == -2);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                           (CUdeviceptr)(uintptr_t)mine));
    free(mine);
}

int main(void)
{
    check_open();
    MUST(cuCtxGetCurrent(&context));
    RUN(device_memory);
    RUN(pinned_memory);
    RUN(unknown_memory);
    return check_close();
}
