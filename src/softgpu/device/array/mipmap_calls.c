/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays with mipmaps, and their levels.
 */
#include <stdlib.h>

#include "array_calls.h"
#include "cuda_array.h"
#include "soft_array.h"
#include "soft_context.h"
#include "soft_stream.h"

struct array *array_get_mipmap_locked(CUmipmappedArray handle)
{
    return soft_get(SOFT_MIPMAP, handle);
}

CUresult soft_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                     const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                     unsigned int numMipmapLevels)
{
    SOFT_LOCKED;
    struct array *array;

    unsigned most = cuda_array_most_levels(pMipmappedArrayDesc);
    unsigned levels = numMipmapLevels > most ? most : numMipmapLevels ? numMipmapLevels : 1;
    CUresult result = array_create_locked(pMipmappedArrayDesc, SOFT_MIPMAP, levels, &array);
    if (!result)
        *pHandle = (CUmipmappedArray)array->handle;
    return result;
}

static CUresult make_level_locked(struct array *whole, unsigned index, struct array **ret_level)
{
    struct array *level = calloc(1, sizeof(*level));

    if (!level)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *level = (struct array){
        .references = 1,
        .context = whole->context,
        .descriptor = cuda_array_level(&whole->descriptor, index),
        .format = whole->format,
        .levels = {whole->levels[index]},
        .level_count = 1,
        .layers = whole->layers,
        .parent = whole,
    };
    level->handle = soft_add(SOFT_ARRAY, level);
    if (!level->handle) {
        free(level);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    whole->references++;
    list_append(&whole->context->arrays, &level->in_context);
    *ret_level = level;
    return CUDA_SUCCESS;
}

CUresult soft_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                       unsigned int level)
{
    SOFT_LOCKED;
    struct array *array = array_get_mipmap_locked(hMipmappedArray);
    CUresult result = CUDA_SUCCESS;

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (level >= array->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array->level_arrays[level])
        result = make_level_locked(array, level, &array->level_arrays[level]);
    if (!result)
        *pLevelArray = (CUarray)array->level_arrays[level]->handle;
    return result;
}

CUresult soft_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    SOFT_LOCKED;
    CUresult result = array_await_locked();
    struct array *array;

    if (result)
        return result;
    array = array_get_mipmap_locked(hMipmappedArray);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < array->level_count; i++) {
        if (array->level_arrays[i])
            array_retire_locked(array->level_arrays[i]);
    }
    array_retire_locked(array);
    return CUDA_SUCCESS;
}
