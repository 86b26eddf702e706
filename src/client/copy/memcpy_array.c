/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of one row of an array: boxes with a height of one. */
#include "client_copy.h"
#include "client_prototypes.h"

static struct cuda_box_side in_array(CUarray array, size_t offset)
{
    return (struct cuda_box_side){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static struct cuda_box_side in_memory(CUdeviceptr address)
{
    return (struct cuda_box_side){.type = CU_MEMORYTYPE_DEVICE, .device = address};
}

static struct cuda_box_side in_host(const void *address)
{
    return (struct cuda_box_side){.type = CU_MEMORYTYPE_HOST, .host = address};
}

static CUresult copy_row(struct cuda_box_side dst, struct cuda_box_side src, size_t size,
                         CUstream stream, bool sync)
{
    const struct cuda_box box = {.dst = dst, .src = src, .width = size, .height = 1, .depth = 1};

    return copy_described(&box, stream, sync);
}

CUresult client_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                                size_t ByteCount)
{
    return copy_row(in_array(dstArray, dstOffset), in_memory(srcDevice), ByteCount, NULL, true);
}

CUresult client_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                                size_t ByteCount)
{
    return copy_row(in_memory(dstDevice), in_array(srcArray, srcOffset), ByteCount, NULL, true);
}

CUresult client_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                size_t ByteCount)
{
    return copy_row(in_array(dstArray, dstOffset), in_host(srcHost), ByteCount, NULL, true);
}

CUresult client_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_row(in_host(dstHost), in_array(srcArray, srcOffset), ByteCount, NULL, true);
}

CUresult client_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray,
                                size_t srcOffset, size_t ByteCount)
{
    return copy_row(in_array(dstArray, dstOffset), in_array(srcArray, srcOffset), ByteCount, NULL,
                    true);
}

CUresult client_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                     size_t ByteCount, CUstream hStream)
{
    return copy_row(in_array(dstArray, dstOffset), in_host(srcHost), ByteCount, hStream, false);
}

CUresult client_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                     size_t ByteCount, CUstream hStream)
{
    return copy_row(in_host(dstHost), in_array(srcArray, srcOffset), ByteCount, hStream, false);
}
