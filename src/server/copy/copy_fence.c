/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of all 32-bit numbers would be too large. A copy of the lower two bytes suffices while
 * the upper half of the word stays the same; each 65,536th fence is written whole.
 */
#include "copy_fence.h"

#include <endian.h>
#include <stdlib.h>

#include "copy_state.h"
#include "fence.h"
#include "log.h"

#define NUMBERS 65536u

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the lower half of a word comes first");

static uint16_t *count_up(void)
{
    uint16_t *numbers = malloc(NUMBERS * sizeof(*numbers));

    for (uint32_t i = 0; numbers && i < NUMBERS; i++)
        numbers[i] = (uint16_t)i;
    return numbers;
}

/* The device's context is current. */
static CUresult make_table(const uint16_t *numbers, const struct device *device,
                           CUdeviceptr *ret_table)
{
    const size_t size = NUMBERS * sizeof(*numbers);
    CUdeviceptr table = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    if (driver.cuMemAlloc_v2)
        result = driver.cuMemAlloc_v2(&table, size);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpyHtoDAsync_v2(table, numbers, size, device->watch);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamSynchronize(device->watch);
    if (result == CUDA_SUCCESS)
        *ret_table = table;
    return result;
}

void copy_fence_prepare(struct device *device)
{
    uint16_t *numbers = count_up();
    CUresult result = numbers ? device_enter(device) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result == CUDA_SUCCESS)
        result = make_table(numbers, device, &device->copies->numbers);
    if (result != CUDA_SUCCESS)
        log_line("Device %d: fences behind copies are not written by the copy engine: %s",
                 device->ordinal, driver_error_name(result));
    free(numbers);
}

/* Whether the upper half of the stream's word already equals that of `seq`. */
static bool upper_half_stays(const struct stream *stream, uint32_t seq)
{
    return fence_expected(stream) >> 16 == seq >> 16;
}

CUresult copy_fence_write(struct stream *stream, uint32_t seq)
{
    CUdeviceptr numbers = stream->device->copies->numbers;

    if (!numbers || !stream->driver || !upper_half_stays(stream, seq))
        return fence_write(stream, seq);
    fence_expect(stream, seq);
    return driver.cuMemcpyDtoHAsync_v2(stream->fence, numbers + (seq % NUMBERS) * sizeof(uint16_t),
                                       sizeof(uint16_t), stream->driver);
}
