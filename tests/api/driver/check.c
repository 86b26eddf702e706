/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver API programs share.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.ptx.h"
#include "quiet.ptx.h"
#include "talk.ptx.h"

#define EXIT_SKIPPED 77

static CUdevice device;
static bool opened;
static int failures;

static const char *name_of(CUresult result)
{
    const char *name = NULL;

    cuGetErrorName(result, &name);
    return name ? name : "unknown error";
}

void check_must(CUresult result, const char *call, const char *file, int line)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s:%d: %s: %s\n", file, line, call, name_of(result));
    exit(EXIT_FAILURE);
}

void check_expect(CUresult expected, CUresult result, const char *call, const char *file, int line)
{
    if (result == expected)
        return;
    printf("%s:%d: %s: %s instead of %s\n", file, line, call, name_of(result), name_of(expected));
    failures++;
}

void check_true(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    printf("%s:%d: not true: %s\n", file, line, text);
    failures++;
}

void check_run(void (*test)(void), const char *name)
{
    int before = failures;

    test();
    printf("%s: %s\n", name, failures == before ? "ok" : "FAILED");
    fflush(stdout);
}

CUdevice check_init(void)
{
    CUresult result = cuInit(0);

    if (result == CUDA_ERROR_NO_DEVICE) {
        puts("no device");
        exit(EXIT_SKIPPED);
    }
    MUST(result);
    MUST(cuDeviceGet(&device, 0));
    return device;
}

CUdevice check_open(void)
{
    CUcontext context;

    check_init();
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    opened = true;
    return device;
}

int check_close(void)
{
    if (opened)
        EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(device));
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

CUmodule load_kernels(void)
{
    CUmodule module;

    MUST(cuModuleLoadData(&module, kernels_ptx));
    return module;
}

CUmodule load_talk(void)
{
    CUmodule module;

    MUST(cuModuleLoadData(&module, talk_ptx));
    return module;
}

CUmodule load_quiet(void)
{
    CUmodule module;

    MUST(cuModuleLoadData(&module, quiet_ptx));
    return module;
}

CUfunction get_kernel(CUmodule module, const char *name)
{
    CUfunction kernel;

    check_must(cuModuleGetFunction(&kernel, module, name), name, __FILE__, __LINE__);
    return kernel;
}

void launch_one(CUfunction kernel, CUstream stream, void **parameters)
{
    MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

CUdeviceptr make_words(size_t count, uint32_t value)
{
    CUdeviceptr words;

    MUST(cuMemAlloc_v2(&words, count * sizeof(uint32_t)));
    MUST(cuMemsetD32_v2(words, value, count));
    MUST(cuStreamSynchronize(NULL)); /* streams that do not block would overtake it */
    return words;
}

bool words_are(CUdeviceptr words, size_t count, uint32_t value)
{
    uint32_t *copy = malloc(count * sizeof(*copy));
    bool same = copy != NULL;

    if (copy)
        MUST(cuMemcpyDtoH_v2(copy, words, count * sizeof(*copy)));
    for (size_t i = 0; same && i < count; i++)
        same = copy[i] == value;
    free(copy);
    return same;
}

uint32_t word_at(CUdeviceptr word)
{
    uint32_t value;

    MUST(cuMemcpyDtoH_v2(&value, word, sizeof(value)));
    return value;
}

CUdeviceptr seen_by_device(void *p)
{
    CUdeviceptr pointer = 0;

    MUST(cuMemHostGetDevicePointer_v2(&pointer, p, 0));
    return pointer;
}

void fill_words(CUmodule module, CUdeviceptr words, uint32_t value, uint32_t count)
{
    void *parameters[] = {&words, &value, &count};

    launch_one(get_kernel(module, "fill"), NULL, parameters);
    MUST(cuCtxSynchronize());
}

bool bytes_are(const uint8_t *bytes, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

uint32_t *make_managed_words(size_t count)
{
    CUdeviceptr address;

    MUST(cuMemAllocManaged(&address, count * 4, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)address, 0, count * 4);
    return (uint32_t *)(uintptr_t)address;
}

void free_managed_words(uint32_t *words)
{
    MUST(cuMemFree_v2((CUdeviceptr)(uintptr_t)words));
}
