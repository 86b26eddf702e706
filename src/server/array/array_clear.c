/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zeroes for new arrays. The driver has no memset of arrays, so they are copied from memory with
 * zeroes. The first array of a device allocates that memory, which stays.
 */
#include "array_clear.h"

#include "array_state.h"
#include "cleanup.h"
#include "cuda_array.h"

/* No row is longer: the largest width of the largest elements. */
#define ZEROES ((uint64_t)CUDA_ARRAY_EXTENT_MAX * 16)

static CUresult make_zeroes(CUstream stream, CUdeviceptr *ret_zeroes)
{
    CUdeviceptr zeroes;
    CUresult result = driver.cuMemAlloc_v2(&zeroes, ZEROES);

    if (result == CUDA_SUCCESS)
        result = driver.cuMemsetD8Async(zeroes, 0, ZEROES, stream);
    if (result == CUDA_SUCCESS)
        *ret_zeroes = zeroes;
    return result;
}

/* The device's context is current. An object is kept when a later step fails. */
static CUresult prepare_zeros(struct device_arrays *arrays)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&arrays->clear_lock);
    CUresult result = CUDA_SUCCESS;

    if (!arrays->clear_stream)
        result =
            driver.cuStreamCreateWithPriority(&arrays->clear_stream, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS && !arrays->zeroes)
        result = make_zeroes(arrays->clear_stream, &arrays->zeroes);
    return result;
}

static CUresult clear_slice(const struct array *array, uint64_t z)
{
    const struct cuda_array_bytes bytes = cuda_array_bytes(&array->descriptor);
    struct device_arrays *arrays = array->device->arrays;
    uint64_t most = ZEROES / bytes.pitch;
    CUresult result = CUDA_SUCCESS;

    for (uint64_t y = 0; y < bytes.height && result == CUDA_SUCCESS; y += most) {
        const uint64_t rows = bytes.height - y < most ? bytes.height - y : most;
        const CUDA_MEMCPY3D copy = {
            .srcMemoryType = CU_MEMORYTYPE_DEVICE,
            .srcDevice = arrays->zeroes,
            .srcPitch = bytes.pitch,
            .srcHeight = rows,
            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
            .dstArray = array->driver,
            .dstY = y,
            .dstZ = z,
            .WidthInBytes = bytes.pitch,
            .Height = rows,
            .Depth = 1,
        };

        result = driver.cuMemcpy3DAsync_v2(&copy, arrays->clear_stream);
    }
    return result;
}

CUresult array_clear(const struct array *array)
{
    const uint64_t depth = cuda_array_bytes(&array->descriptor).depth;
    struct device_arrays *arrays = array->device->arrays;
    CUresult result = prepare_zeros(arrays);

    for (uint64_t z = 0; z < depth && result == CUDA_SUCCESS; z++)
        result = clear_slice(array, z);
    return result == CUDA_SUCCESS ? driver.cuStreamSynchronize(arrays->clear_stream) : result;
}
