/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver tells of a pointer.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The bytes that a call writes are those that come out the same, whatever was there before. */
static unsigned bytes_written(CUpointer_attribute attribute, CUdeviceptr pointer,
                              CUresult *ret_result)
{
    unsigned char one[64], other[64];
    unsigned width = 0;

    memset(one, 0xaa, sizeof(one));
    memset(other, 0x55, sizeof(other));
    *ret_result = cuPointerGetAttribute(one, attribute, pointer);
    cuPointerGetAttribute(other, attribute, pointer);
    for (unsigned i = 0; i < sizeof(one); i++)
        if (one[i] == other[i])
            width = i + 1;
    return width;
}

/* By the number of the attribute, as a driver of CUDA 13 writes them on an H200. */
static void widths_of_attributes(void)
{
    static const unsigned expected[] = {0, 8, 4, 8, 8, 12, 4, 8, 4, 4, 4,
                                        8, 8, 4, 8, 4, 4,  8, 8, 8, 8, 4};
    CUdeviceptr words = make_words(100, 0);

    for (int i = CU_POINTER_ATTRIBUTE_CONTEXT; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
         i++) {
        CUresult result;
        unsigned width = bytes_written((CUpointer_attribute)i, words, &result);

        if (width != expected[i])
            printf("attribute %d has %u bytes\n", i, width);
        IS_TRUE(width == expected[i]);
        IS_TRUE((result == CUDA_SUCCESS) == (i != CU_POINTER_ATTRIBUTE_HOST_POINTER));
    }
    MUST(cuMemFree_v2(words));
}

/* Managed memory has one address for all, and is asked for no other. */
static void managed_memory(void)
{
    CUdeviceptr managed, pointer = 0;

    MUST(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuMemHostGetDevicePointer_v2(&pointer, (void *)(uintptr_t)managed, 0));
    MUST(cuMemFree_v2(managed));
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
    RUN(widths_of_attributes);
    RUN(managed_memory);
    RUN(pinned_memory);
    RUN(unknown_memory);
    return check_close();
}
