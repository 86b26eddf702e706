/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of an image for the driver: the image itself or, where the server compiles PTX outside
 * of the driver (FUNNEL_PTX_COMPILER), the result.
 */
#pragma once

#include "cuda_result.h"
#include "ptx_compiler.h"

struct library;
struct stored_image;

struct compiled_image {
    const void *bytes;
    size_t size;
    struct ptx_compiled compiled;
};

/* Uses the options of the library. With `compiler` NULL the driver gets every image unchanged.
 * CUDA_SUCCESS; CUDA_ERROR_INVALID_PTX or CUDA_ERROR_UNSUPPORTED_PTX_VERSION, with the compiler's
 * log; CUDA_ERROR_INVALID_IMAGE when the compiler crashed or took too long;
 * CUDA_ERROR_JIT_COMPILER_NOT_FOUND when it is gone; CUDA_ERROR_OUT_OF_MEMORY. In each case the
 * caller frees the result. */
CUresult compiled_image_make(const struct ptx_compiler *compiler, const struct library *library,
                             const struct stored_image *image, unsigned sm,
                             struct compiled_image *ret_image);
void compiled_image_fini(struct compiled_image *image);
