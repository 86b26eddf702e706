/* SPDX-License-Identifier: Apache-2.0 */
/* Hints to the driver's own compiler are skipped. */
#include "compiled_image.h"

#include <errno.h>

#include "image_store.h"
#include "library.h"

#define OPTIMIZATION_MAX 3u /* of the compiler; the driver takes 4 for the same */

static unsigned number_of(const struct library *library, CUjit_option option, unsigned otherwise)
{
    for (unsigned i = 0; i < library->option_count; i++)
        if (library->options[i] == option)
            return (unsigned)(uintptr_t)library->values[i];
    return otherwise;
}

static struct jit_link_options options_of(const struct library *library, unsigned sm)
{
    unsigned level = number_of(library, CU_JIT_OPTIMIZATION_LEVEL, OPTIMIZATION_MAX);

    return (struct jit_link_options){
        .sm = sm,
        .max_registers = number_of(library, CU_JIT_MAX_REGISTERS, 0),
        .optimization = level < OPTIMIZATION_MAX ? level : OPTIMIZATION_MAX,
        .debug_info = number_of(library, CU_JIT_GENERATE_DEBUG_INFO, 0) != 0,
        .line_info = number_of(library, CU_JIT_GENERATE_LINE_INFO, 0) != 0,
    };
}

static CUresult result_of(int error)
{
    switch (error) {
    case 0:
        return CUDA_SUCCESS;
    case -EINVAL:
        return CUDA_ERROR_INVALID_PTX;
    case -EPROTONOSUPPORT:
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case -EBADMSG:
        return CUDA_ERROR_INVALID_IMAGE;
    case -EPIPE:
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    default:
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

CUresult compiled_image_make(const struct ptx_compiler *compiler, const struct library *library,
                             const struct stored_image *image, unsigned sm,
                             struct compiled_image *ret_image)
{
    const struct image_source source = {image->fd, image->bytes, image->size};
    const struct jit_link_options options = options_of(library, sm);

    *ret_image =
        (struct compiled_image){.bytes = image->bytes, .size = image->size, .compiled.log = ""};
    if (!compiler || !ptx_compiler_is_needed(image->bytes, image->size, sm))
        return CUDA_SUCCESS;
    CUresult result =
        result_of(ptx_compiler_compile(compiler, &source, &options, &ret_image->compiled));
    ret_image->bytes = ret_image->compiled.code;
    ret_image->size = ret_image->compiled.code_size;
    return result;
}

void compiled_image_fini(struct compiled_image *image)
{
    ptx_compiled_fini(&image->compiled);
}
