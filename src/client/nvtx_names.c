/* SPDX-License-Identifier: Apache-2.0 */
/* See nvtx_names.h. The runtime's handles are the driver's. */
#include "nvtx_names.h"

#include "cuda_abi.h"
#include "nvtx_call.h"

/* The functions for both kinds of text. Each takes the object and its name. */
#define NAMING(object, function, type, kind)                                             \
    static void object##_ascii(type which, const char *text)                             \
    {                                                                                    \
        nvtx_tell(NVTX_CALL(function##A, NULL, NVTX_WORD(which), NVTX_WORD(text)), kind, \
                  nvtx_text(text), NVTX_WORD(which), NULL);                              \
    }                                                                                    \
    static void object##_unicode(type which, const wchar_t *text)                        \
    {                                                                                    \
        struct nvtx_name name;                                                           \
        nvtx_tell(NVTX_CALL(function##W, NULL, NVTX_WORD(which), NVTX_WORD(text)), kind, \
                  nvtx_narrow(text, &name), NVTX_WORD(which), NULL);                     \
    }

NAMING(category, NameCategory, uint32_t, PROFILER_NAME_OTHER)
NAMING(thread, NameOsThread, uint32_t, PROFILER_NAME_THREAD)
NAMING(cu_device, NameCuDevice, CUdevice, PROFILER_NAME_DEVICE)
NAMING(cu_context, NameCuContext, CUcontext, PROFILER_NAME_CONTEXT)
NAMING(cu_stream, NameCuStream, CUstream, PROFILER_NAME_STREAM)
NAMING(cu_event, NameCuEvent, CUevent, PROFILER_NAME_OTHER)
NAMING(cuda_device, NameCudaDevice, int, PROFILER_NAME_DEVICE)
NAMING(cuda_stream, NameCudaStream, CUstream, PROFILER_NAME_STREAM)
NAMING(cuda_event, NameCudaEvent, CUevent, PROFILER_NAME_OTHER)

static void domain_category_ascii(void *domain, uint32_t category, const char *text)
{
    nvtx_tell(NVTX_CALL(DomainNameCategoryA, domain, NVTX_WORD(domain), category, NVTX_WORD(text)),
              PROFILER_NAME_OTHER, nvtx_text(text), category, NULL);
}

static void domain_category_unicode(void *domain, uint32_t category, const wchar_t *text)
{
    struct nvtx_name name;

    nvtx_tell(NVTX_CALL(DomainNameCategoryW, domain, NVTX_WORD(domain), category, NVTX_WORD(text)),
              PROFILER_NAME_OTHER, nvtx_narrow(text, &name), category, NULL);
}

#define PAIR(place, object)                        \
    {place##_A, (nvtx_function)object##_ascii},    \
    {                                              \
        place##_W, (nvtx_function)object##_unicode \
    }

static const struct nvtx_replacement core[] = {
    PAIR(NVTX_NAME_CATEGORY, category),
    PAIR(NVTX_NAME_OS_THREAD, thread),
};

static const struct nvtx_replacement cuda[] = {
    PAIR(NVTX_NAME_CU_DEVICE, cu_device),
    PAIR(NVTX_NAME_CU_CONTEXT, cu_context),
    PAIR(NVTX_NAME_CU_STREAM, cu_stream),
    PAIR(NVTX_NAME_CU_EVENT, cu_event),
};

static const struct nvtx_replacement cudart[] = {
    PAIR(NVTX_NAME_CUDA_DEVICE, cuda_device),
    PAIR(NVTX_NAME_CUDA_STREAM, cuda_stream),
    PAIR(NVTX_NAME_CUDA_EVENT, cuda_event),
};

static const struct nvtx_replacement core2[] = {
    PAIR(NVTX_DOMAIN_NAME_CATEGORY, domain_category),
};

void nvtx_names_replace(const struct nvtx_callbacks *callbacks)
{
    nvtx_replace(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(*core));
    nvtx_replace(callbacks, NVTX_MODULE_CUDA, cuda, sizeof(cuda) / sizeof(*cuda));
    nvtx_replace(callbacks, NVTX_MODULE_CUDART, cudart, sizeof(cudart) / sizeof(*cudart));
    nvtx_replace(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(*core2));
}
