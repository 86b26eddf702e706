/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor maps there are. What they look like is the device's own affair. */
#include "check.h"

#include <stdio.h>
#include <string.h>

struct arguments {
    CUtensorMapDataType type;
    cuuint32_t rank;
    uint64_t offset; /* of the address */
    cuuint64_t dims[5], strides[4];
    cuuint32_t box[5], steps[5];
    int lower[3], upper[3];
    cuuint32_t channels, pixels;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

static CUdeviceptr memory;

/* A matrix of halves, of which boxes of 64 by 32 are copied. */
static const struct arguments matrix = {
    .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    .rank = 2,
    .dims = {256, 128},
    .strides = {512},
    .box = {64, 32},
    .steps = {1, 1},
    .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
    .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
};

/* Images with 64 channels, for a convolution with a filter of 3 by 3. */
static const struct arguments images = {
    .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    .rank = 4,
    .dims = {64, 32, 32, 4},
    .strides = {128, 4096, 131072},
    .steps = {1, 1, 1, 1},
    .lower = {-1, -1},
    .upper = {-1, -1},
    .channels = 64,
    .pixels = 128,
    .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
};

static CUresult tiled(const struct arguments *a, CUtensorMap *map)
{
    return cuTensorMapEncodeTiled(map, a->type, a->rank, (void *)(uintptr_t)(memory + a->offset),
                                  a->dims, a->strides, a->box, a->steps, a->interleave, a->swizzle,
                                  a->promotion, a->fill);
}

static CUresult im2col(const struct arguments *a, CUtensorMap *map)
{
    return cuTensorMapEncodeIm2col(map, a->type, a->rank, (void *)(uintptr_t)(memory + a->offset),
                                   a->dims, a->strides, a->lower, a->upper, a->channels, a->pixels,
                                   a->steps, a->interleave, a->swizzle, a->promotion, a->fill);
}

static void maps_of_tiles(void)
{
    struct arguments a = matrix;
    CUtensorMap first, second;

    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    EXPECT(CUDA_SUCCESS, tiled(&a, &first));
    EXPECT(CUDA_SUCCESS, tiled(&a, &second));
    IS_TRUE(memcmp(&first, &second, sizeof(first)) == 0);
    a.offset = 512;
    EXPECT(CUDA_SUCCESS, tiled(&a, &second));
    IS_TRUE(memcmp(&first, &second, sizeof(first)) != 0);
    EXPECT(CUDA_SUCCESS, cuTensorMapReplaceAddress(&first, (void *)(uintptr_t)(memory + 512)));
    IS_TRUE(memcmp(&first, &second, sizeof(first)) == 0);
    a = matrix;
    a.rank = 1;
    EXPECT(CUDA_SUCCESS, tiled(&a, &first));
    a = (struct arguments){
        .type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
        .rank = 5,
        .dims = {64, 4, 4, 4, 4},
        .strides = {64, 256, 1024, 4096},
        .box = {32, 2, 2, 2, 2},
        .steps = {1, 1, 2, 1, 1},
        .swizzle = CU_TENSOR_MAP_SWIZZLE_32B,
    };
    EXPECT(CUDA_SUCCESS, tiled(&a, &first));
}

static void refused(struct arguments a)
{
    CUtensorMap map;

    EXPECT(CUDA_ERROR_INVALID_VALUE, tiled(&a, &map));
}

#define REFUSED(...)                 \
    do {                             \
        struct arguments a = matrix; \
        __VA_ARGS__;                 \
        refused(a);                  \
    } while (0)

static void mistakes(void)
{
    CUtensorMap map[2];

    REFUSED(a.rank = 0);
    REFUSED(a.rank = 6);
    REFUSED(a.offset = 8);
    REFUSED(a.dims[1] = 0);
    REFUSED(a.strides[0] = 520);
    REFUSED(a.strides[0] = 1ull << 40);
    REFUSED(a.box[1] = 0);
    REFUSED(a.box[1] = 257);
    REFUSED(a.box[0] = 63);
    REFUSED(a.box[0] = 128); /* more than the swizzle's 128 bytes */
    REFUSED(a.steps[1] = 0);
    REFUSED(a.steps[1] = 9);
    REFUSED(a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B); /* needs a third dimension */
    REFUSED(a.type = (CUtensorMapDataType)99);
    REFUSED(a.swizzle = (CUtensorMapSwizzle)99);
    REFUSED(a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
            a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    EXPECT(CUDA_ERROR_INVALID_VALUE, tiled(&matrix, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuTensorMapEncodeTiled(map, matrix.type, 2, (void *)(uintptr_t)memory, NULL,
                                  matrix.strides, matrix.box, matrix.steps, 0, 0, 0, 0));
}

static void maps_of_pixels(void)
{
    struct arguments a = images;
    CUtensorMap map;

    EXPECT(CUDA_SUCCESS, im2col(&a, &map));
    a.channels = 257;
    EXPECT(CUDA_ERROR_INVALID_VALUE, im2col(&a, &map));
    a = images;
    a.pixels = 1025;
    EXPECT(CUDA_ERROR_INVALID_VALUE, im2col(&a, &map));
    a = images;
    a.lower[0] = -129;
    EXPECT(CUDA_ERROR_INVALID_VALUE, im2col(&a, &map));
    a = images;
    a.rank = 2;
    EXPECT(CUDA_ERROR_INVALID_VALUE, im2col(&a, &map));
}

int main(void)
{
    CUdevice device = check_open();
    int major = 0;

    MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (major < 9) {
        printf("tensor maps are for devices of compute capability 9.0 and later\n");
        return 77;
    }
    MUST(cuMemAlloc_v2(&memory, 1u << 20));
    RUN(maps_of_tiles);
    RUN(mistakes);
    RUN(maps_of_pixels);
    return check_close();
}
