/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that CUDA_INJECTION64_PATH names: a profiler of kernels, copies and driver calls by
 * CUPTI that throws its records away. CUPTI is opened by name, so that the same library asks
 * NVIDIA's and Funnel's, and is built without either.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_SIZE (8u << 20)
#define RECORD_ALIGN 8u

static const char *const names[] = {
    "libcupti.so.13",
    "libcupti.so.12",
    "/usr/local/cuda/lib64/libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
};
/* Of copies, memsets, driver calls, runtime calls and kernels. */
static const uint32_t kinds[] = {1, 2, 4, 5, 10};

int InitializeInjection(void);

static void give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(RECORD_ALIGN, BUFFER_SIZE);
    *size = *buffer ? BUFFER_SIZE : 0;
    *most = 0;
}

static void take_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    free(buffer);
}

static void *open_cupti(void)
{
    void *library = NULL;

    for (unsigned i = 0; i < sizeof(names) / sizeof(*names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    return library;
}

static int enable_kinds(void *library)
{
    int (*set_callbacks)(void *, void *);
    int (*enable)(uint32_t);

    *(void **)&set_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&enable = dlsym(library, "cuptiActivityEnable");
    if (!set_callbacks || !enable || set_callbacks((void *)give_buffer, (void *)take_buffer))
        return 0;
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (enable(kinds[i]))
            return 0;
    return 1;
}

/* A program that is not profiled measures nothing of use. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    void *library = open_cupti();

    if (library && enable_kinds(library))
        return 1;
    fprintf(stderr, "profiler: there is no CUPTI that profiles this program\n");
    _Exit(1);
}
