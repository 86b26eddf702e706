/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies of one row of an array: boxes with a height of one.
 */
#include "soft_copy.h"

static struct copy_request row_request(size_t size, CUstream stream, bool async)
{
    return (struct copy_request){
        .box = {.width = size, .height = 1, .depth = 1}, .stream = stream, .async = async};
}

static CUresult into_array(CUarray array, size_t offset, uint64_t from, enum box_place place,
                           struct copy_request request)
{
    request.to = PLACE_ARRAY;
    request.to_part = (struct array_part){array, {offset}};
    request.from = place;
    request.box.from.address = from;
    return copy_submit(&request);
}

static CUresult out_of_array(uint64_t to, enum box_place place, CUarray array, size_t offset,
                             struct copy_request request)
{
    request.from = PLACE_ARRAY;
    request.from_part = (struct array_part){array, {offset}};
    request.to = place;
    request.box.to.address = to;
    return copy_submit(&request);
}

CUresult soft_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                              size_t ByteCount)
{
    return into_array(dstArray, dstOffset, (uintptr_t)srcHost, PLACE_HOST,
                      row_request(ByteCount, NULL, false));
}

CUresult soft_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                   size_t ByteCount, CUstream hStream)
{
    return into_array(dstArray, dstOffset, (uintptr_t)srcHost, PLACE_HOST,
                      row_request(ByteCount, hStream, true));
}

CUresult soft_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                              size_t ByteCount)
{
    return into_array(dstArray, dstOffset, srcDevice, PLACE_DEVICE,
                      row_request(ByteCount, NULL, false));
}

CUresult soft_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return out_of_array((uintptr_t)dstHost, PLACE_HOST, srcArray, srcOffset,
                        row_request(ByteCount, NULL, false));
}

CUresult soft_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                   size_t ByteCount, CUstream hStream)
{
    return out_of_array((uintptr_t)dstHost, PLACE_HOST, srcArray, srcOffset,
                        row_request(ByteCount, hStream, true));
}

CUresult soft_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                              size_t ByteCount)
{
    return out_of_array(dstDevice, PLACE_DEVICE, srcArray, srcOffset,
                        row_request(ByteCount, NULL, false));
}

CUresult soft_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray,
                              size_t srcOffset, size_t ByteCount)
{
    struct copy_request request = row_request(ByteCount, NULL, false);

    request.to = request.from = PLACE_ARRAY;
    request.to_part = (struct array_part){dstArray, {dstOffset}};
    request.from_part = (struct array_part){srcArray, {srcOffset}};
    return copy_submit(&request);
}
