// SPDX-License-Identifier: Apache-2.0
// Textures that several programs make in the same way.
#pragma once

#include "check.cuh"

static cudaTextureObject_t texture_on(cudaArray_t array, const cudaTextureDesc &description)
{
    cudaResourceDesc resource = {};
    cudaTextureObject_t texture;

    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    return texture;
}
