/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules. Loaded as libraries: cuModuleLoadData stalls every client until the GPU is idle,
 * cuLibraryLoadData nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "cleanup.h"
#include "image.h"
#include "memory.h"
#include "objects.h"
#include "server_dispatch.h"
#include "stream.h"

#define JIT_OPTIONS_MAX 32u
#define ERROR_LOG_SIZE 4096u

/* The driver may compile long after the load, and then still writes to what it was given there. So
 * options and log live as long as the module. */
struct jit {
    CUjit_option options[JIT_OPTIONS_MAX + 2];
    void *values[JIT_OPTIONS_MAX + 2];
    unsigned count;
    char log[ERROR_LOG_SIZE];
};

/* Options whose value is a number; the others hold pointers into the client. */
static bool option_passes(uint64_t option)
{
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
        return true;
    default:
        return false;
    }
}

static void jit_add(struct jit *jit, CUjit_option option, uintptr_t value)
{
    jit->options[jit->count] = option;
    jit->values[jit->count] = (void *)value;
    jit->count++;
}

static struct jit *jit_create(const struct wire_cuLibraryLoadData *in)
{
    struct jit *jit = calloc(1, sizeof(*jit));
    unsigned offered = in->options_size / 16;

    if (!jit)
        return NULL;
    for (unsigned i = 0; i < offered && jit->count < JIT_OPTIONS_MAX; i++) {
        uint64_t pair[2];
        memcpy(pair, (const unsigned char *)in->options + i * sizeof(pair), sizeof(pair));
        if (option_passes(pair[0]))
            jit_add(jit, (CUjit_option)pair[0], (uintptr_t)pair[1]);
    }
    jit_add(jit, CU_JIT_ERROR_LOG_BUFFER, (uintptr_t)jit->log);
    jit_add(jit, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof(jit->log));
    return jit;
}

static CUresult take_image(struct session *session, const struct wire_cuLibraryLoadData *in,
                           void **ret_image)
{
    CUresult result = blob_take(session, in->blob, in->image_size, ret_image);

    if (result == CUDA_SUCCESS && !image_is_sound(*ret_image, in->image_size)) {
        session_complain(session, "cuLibraryLoadData: the image is none, or is cut short");
        free(*ret_image);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return result;
}

/* The driver compiles when it is first asked for something that only the compiler knows; the client
 * wants to hear now what is wrong with an image. */
static CUresult compile(CUlibrary library, CUdevice device)
{
    unsigned kernels = 0;
    CUkernel first = NULL;
    int registers;
    CUresult result = driver.cuLibraryGetKernelCount(&kernels, library);

    if (result != CUDA_SUCCESS || kernels == 0 || !driver.cuKernelGetAttribute)
        return result;
    result = driver.cuLibraryEnumerateKernels(&first, 1, library);
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, first, device);
    return result;
}

static CUresult load_library(const void *image, struct jit *jit, CUdevice device,
                             CUlibrary *ret_library)
{
    CUlibrary library = NULL;
    CUresult result = driver.cuLibraryLoadData(&library, image, jit->options, jit->values,
                                               jit->count, NULL, NULL, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = compile(library, device);
    if (result != CUDA_SUCCESS) {
        driver.cuLibraryUnload(library);
        return result;
    }
    *ret_library = library;
    return CUDA_SUCCESS;
}

static CUresult enter_module(struct session *session, const struct wire_cuLibraryLoadData *in,
                             struct module *module, const void *image)
{
    CUresult result = load_library(image, module->jit, module->device->ordinal, &module->driver);

    if (result != CUDA_SUCCESS)
        return result;
    result = session_put(session, WIRE_MODULE, in->library, module);
    if (result == CUDA_SUCCESS)
        session->modules++;
    return result;
}

static struct module *module_create(const struct device *device,
                                    const struct wire_cuLibraryLoadData *in)
{
    struct module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->device = device;
    list_init(&module->functions);
    module->jit = jit_create(in);
    if (!module->jit) {
        free(module);
        return NULL;
    }
    return module;
}

static void report_log(const struct jit *jit, struct wire_cuLibraryLoadData_reply *ret_out)
{
    uint32_t size = (uint32_t)strnlen(jit->log, sizeof(jit->log));

    if (size > ret_out->error_log_capacity)
        size = ret_out->error_log_capacity;
    memcpy(ret_out->error_log, jit->log, size);
    ret_out->error_log_size = size;
}

CUresult serve_cuLibraryLoadData(struct session *session, const struct wire_cuLibraryLoadData *in,
                                 struct wire_cuLibraryLoadData_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuLibraryLoadData", in->device);
    _cleanup_free_ void *image = NULL;
    void *taken = NULL;
    CUresult result = take_image(session, in, &taken);

    if (result != CUDA_SUCCESS)
        return result;
    image = taken;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (session->modules >= SESSION_MODULES_MAX) {
        session_complain(session, "cuLibraryLoadData: more than %u modules", SESSION_MODULES_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct module *module = module_create(device, in);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = session_enter(session, device);
    module->prints = image_prints(image, in->image_size);
    if (result == CUDA_SUCCESS)
        result = enter_module(session, in, module, image);
    report_log(module->jit, ret_out);
    if (result != CUDA_SUCCESS)
        module_destroy(session, module);
    return result;
}

/* Graphs keep the driver's functions. */
static void forget_chains(struct session *session, const struct module *module)
{
    struct session_device *home = &session->device[module->device->ordinal];

    list_for_each(struct stream, stream, &home->streams, link)
        chains_forget_module(&stream->chains, module);
}

void module_destroy(struct session *session, struct module *module)
{
    if (!module)
        return;
    forget_chains(session, module);
    list_for_each_safe(struct function, function, &module->functions, link)
        function_destroy(session, function);
    memory_forget_module(session, module);
    if (module->driver)
        driver.cuLibraryUnload(module->driver);
    free(module->jit);
    free(module);
}

CUresult serve_cuLibraryUnload(struct session *session, const struct wire_cuLibraryUnload *in,
                               struct module *library)
{
    CUresult result = session_enter(session, library->device);

    session_remove(session, WIRE_MODULE, in->library);
    session->modules--;
    module_destroy(session, library);
    return result;
}

CUresult serve_cuLibraryGetGlobal(struct session *session, const struct wire_cuLibraryGetGlobal *in,
                                  struct module *library,
                                  struct wire_cuLibraryGetGlobal_reply *ret_out)
{
    CUdeviceptr address = 0;
    size_t size = 0;
    CUresult result = session_enter(session, library->device);

    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetGlobal(&address, &size, library->driver, in->name);
    if (result != CUDA_SUCCESS)
        return result;

    struct granule global = {.kind = GRANULE_GLOBAL,
                             .part = (unsigned)library->device->ordinal,
                             .address = address,
                             .size = size,
                             .fd = -1,
                             .module = library};
    if (size && !memory_covers(session, address, size))
        result = memory_allow(session, &global);
    ret_out->address = address;
    ret_out->size = size;
    return result;
}

static CUresult list_kernels(CUlibrary library, CUkernel **ret_kernels, unsigned *ret_count)
{
    unsigned count = 0;
    CUresult result = driver.cuLibraryGetKernelCount(&count, library);

    if (result != CUDA_SUCCESS)
        return result;
    CUkernel *kernels = calloc(count + 1, sizeof(*kernels));
    if (!kernels)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        result = driver.cuLibraryEnumerateKernels(kernels, count, library);
    if (result != CUDA_SUCCESS) {
        free(kernels);
        return result;
    }
    *ret_kernels = kernels;
    *ret_count = count;
    return CUDA_SUCCESS;
}

CUresult serve_cuLibraryEnumerateKernels(struct session *session,
                                         const struct wire_cuLibraryEnumerateKernels *in,
                                         struct module *library,
                                         struct wire_cuLibraryEnumerateKernels_reply *ret_out)
{
    _cleanup_free_ CUkernel *kernels = NULL;
    unsigned count = 0;
    CUresult result = session_enter(session, library->device);

    if (result == CUDA_SUCCESS)
        result = list_kernels(library->driver, &kernels, &count);
    for (unsigned i = in->first; result == CUDA_SUCCESS && i < count; i++) {
        const char *name = NULL;
        result = driver.cuKernelGetName(&name, kernels[i]);
        size_t size = result == CUDA_SUCCESS ? strlen(name) + 1 : 0;
        if (size > ret_out->names_capacity - ret_out->names_size)
            break;
        memcpy((char *)ret_out->names + ret_out->names_size, name, size);
        ret_out->names_size += (uint32_t)size;
    }
    ret_out->total = count;
    return result;
}
