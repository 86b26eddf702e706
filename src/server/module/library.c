/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libraries and filters their options. */
#include "library.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "exclusive.h"
#include "image_bundle.h"
#include "image_check.h"
#include "image_store.h"
#include "loader.h"
#include "memory.h"

static void add_option(struct library *library, CUjit_option option, uintptr_t value)
{
    library->options[library->option_count] = option;
    library->values[library->option_count] = (void *)value;
    library->option_count++;
}

struct library *library_create(struct stored_image *image, const void *options,
                               uint32_t options_size)
{
    struct library *library = calloc(1, sizeof(*library));

    if (!library)
        return NULL;
    list_init(&library->link);
    atomic_init(&library->users, 1);
    library->image = stored_image_ref(image);
    library->may_print = library->may_allocate = library->has_pointers = true;
    library->option_count =
        jit_pairs_read(options, options_size, false, library->options, library->values);
    add_option(library, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)library->log);
    add_option(library, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof(library->log));
    return library;
}

struct library *library_use(struct library *library)
{
    atomic_fetch_add_explicit(&library->users, 1, memory_order_relaxed);
    return library;
}

/* Partner: the same for the library's module on another device. */
bool library_put(struct library *library)
{
    return atomic_fetch_sub_explicit(&library->users, 1, memory_order_acq_rel) == 1;
}

/* Errors in PTX must be reported by the load. NVIDIA's driver compiles PTX only when the module is
 * requested. */
static CUresult get_module(CUlibrary library, struct session *session, const struct device *device)
{
    CUmodule module = NULL;
    struct exclusive_call call;
    CUresult result = session ? exclusive_begin(session, device, "cuLibraryGetModule", &call)
                              : exclusive_begin_now(device, "cuLibraryGetModule", &call);

    if (result != CUDA_SUCCESS)
        return result;
    result = driver.cuLibraryGetModule(&module, library);
    exclusive_end(session, device, &call);
    return result;
}

CUresult library_compile(const struct library *library, struct session *session,
                         const struct device *device)
{
    unsigned kernels = 0;
    CUresult result = driver.cuLibraryGetKernelCount(&kernels, library->driver);

    if (result != CUDA_SUCCESS || !image_is_ptx(library->code.bytes, library->code.size))
        return result;
    result = get_module(library->driver, session, device);
    return result == CUDA_ERROR_OUT_OF_MEMORY && session && memory_reclaim_unused(session, device)
               ? get_module(library->driver, session, device)
               : result;
}

static CUresult give_to_driver(struct library *library, const void *code)
{
    CUlibraryOption is_kept = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *yes = (void *)1;

    return driver.cuLibraryLoadData(&library->driver, code, library->options, library->values,
                                    library->option_count, &is_kept, &yes, 1);
}

CUresult library_load(struct library *library)
{
    const struct compiled_image *code = &library->code;

    if (image_is_bundle(code->bytes, code->size) &&
        !image_wrap(code->bytes, code->size, &library->wrapper))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return give_to_driver(library, library->wrapper ? library->wrapper : code->bytes);
}

void library_destroy(struct library *library)
{
    if (!library)
        return;
    if (library->driver)
        driver.cuLibraryUnload(library->driver);
    compiled_image_fini(&library->code);
    free(library->wrapper);
    stored_image_unref(library->image);
    print_formats_unref(library->formats);
    image_names_fini(&library->callers);
    free(library);
}
