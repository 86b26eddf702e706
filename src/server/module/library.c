/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libraries and filters their options. */
#include "library.h"

#include <stdlib.h>
#include <string.h>

#include "calm.h"
#include "cleanup.h"
#include "image_bundle.h"
#include "image_check.h"
#include "loader.h"

static void add_option(struct library *library, CUjit_option option, uintptr_t value)
{
    library->options[library->option_count] = option;
    library->values[library->option_count] = (void *)value;
    library->option_count++;
}

struct library *library_create(const void *options, uint32_t options_size)
{
    struct library *library = calloc(1, sizeof(*library));

    if (!library)
        return NULL;
    list_init(&library->link);
    library->users = 1;
    library->may_print = library->may_allocate = true;
    library->option_count =
        jit_pairs_read(options, options_size, false, library->options, library->values);
    add_option(library, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)library->log);
    add_option(library, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof(library->log));
    return library;
}

struct library *library_use(struct library *library)
{
    __atomic_add_fetch(&library->users, 1, __ATOMIC_RELAXED);
    return library;
}

/* Partner: the same for the library's module on another device. */
bool library_put(struct library *library)
{
    return __atomic_sub_fetch(&library->users, 1, __ATOMIC_ACQ_REL) == 0;
}

/* The client has to be told now what is wrong with an image. NVIDIA's driver counts the kernels of
 * PTX text that does not compile, and compiles it when it is asked for the module. */
static CUresult compile(struct session *session, const struct device *device, CUlibrary library,
                        bool is_text)
{
    unsigned kernels = 0;
    CUmodule module = NULL;
    struct calm calm;
    CUresult result = driver.cuLibraryGetKernelCount(&kernels, library);

    if (result == CUDA_SUCCESS && is_text)
        result = session ? calm_begin(session, device, "cuLibraryGetModule", &calm)
                         : calm_begin_at_once(device, "cuLibraryGetModule", &calm);
    if (result != CUDA_SUCCESS || !is_text)
        return result;
    result = driver.cuLibraryGetModule(&module, library);
    calm_end(session, device, &calm);
    return result;
}

CUresult library_load(struct library *library, struct session *session, const struct device *device,
                      const void *image, size_t size)
{
    _cleanup_free_ struct image_wrapper *wrapper = NULL;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!image_is_bundle(image, size) || image_wrap(image, size, &wrapper))
        result =
            driver.cuLibraryLoadData(&library->driver, wrapper ? wrapper : image, library->options,
                                     library->values, library->option_count, NULL, NULL, 0);
    return result != CUDA_SUCCESS
               ? result
               : compile(session, device, library->driver, image_is_text(image, size));
}

void library_destroy(struct library *library)
{
    if (!library)
        return;
    if (library->driver)
        driver.cuLibraryUnload(library->driver);
    free(library);
}
