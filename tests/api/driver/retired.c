/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points of CUDA 2 and 3 that are still exported. They are the launch interface with
 * parameters set one by one, references on contexts, and the 32 bit forms.
 */
#include "check.h"

#include <pthread.h>

#define THREADS 8

static CUdevice device;
static CUmodule module;
static CUdeviceptr out;

static void set_pointer(CUfunction kernel)
{
    EXPECT(CUDA_SUCCESS, cuParamSetSize(kernel, sizeof(out)));
    EXPECT(CUDA_SUCCESS, cuParamSetv(kernel, 0, &out, sizeof(out)));
}

static void launches_what_was_set(void)
{
    CUfunction shape = get_kernel(module, "shape");
    uint32_t expected = 0;

    for (uint32_t block = 0; block < 6; block++)
        for (uint32_t thread = 0; thread < 30; thread++)
            expected += block * 1000 + thread;
    MUST(cuMemsetD32_v2(out, 0, 2));
    EXPECT(CUDA_SUCCESS, cuFuncSetBlockShape(shape, 5, 3, 2));
    set_pointer(shape);
    EXPECT(CUDA_SUCCESS, cuLaunchGrid(shape, 3, 2));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(out) == 180 && word_at(out + 4) == expected);
    EXPECT(CUDA_SUCCESS, cuLaunch(shape));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(out) == 210);
}

static void takes_numbers(void)
{
    CUfunction fill = get_kernel(module, "fill");
    CUstream stream;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemsetD32_v2(out, 0, 64));
    EXPECT(CUDA_SUCCESS, cuFuncSetBlockShape(fill, 32, 1, 1));
    set_pointer(fill);
    EXPECT(CUDA_SUCCESS, cuParamSetSize(fill, 16));
    EXPECT(CUDA_SUCCESS, cuParamSetf(fill, 8, 1.0f));
    EXPECT(CUDA_SUCCESS, cuParamSeti(fill, 12, 64));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuLaunchGridAsync(fill, 1, 1, stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    IS_TRUE(words_are(out, 64, 0x3f800000));
    MUST(cuStreamDestroy_v2(stream));
}

static void has_shared_memory(void)
{
    CUfunction reverse = get_kernel(module, "reverse");

    MUST(cuMemsetD32_v2(out, 7, 64));
    MUST(cuMemsetD32_v2(out + 63 * 4, 9, 1));
    EXPECT(CUDA_SUCCESS, cuFuncSetBlockShape(reverse, 64, 1, 1));
    EXPECT(CUDA_SUCCESS, cuFuncSetSharedSize(reverse, 256));
    set_pointer(reverse);
    EXPECT(CUDA_SUCCESS, cuLaunch(reverse));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    IS_TRUE(word_at(out) == 9 && word_at(out + 63 * 4) == 7);
}

static void *set_and_launch(void *kernel)
{
    MUST(cuCtxSetCurrent(NULL));
    CUcontext context;
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 50; i++) {
        set_pointer(kernel);
        EXPECT(CUDA_SUCCESS, cuLaunch(kernel));
    }
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    MUST(cuDevicePrimaryCtxRelease_v2(device));
    return NULL;
}

/* They set the same, so each launch is right, whichever thread set it. */
static void threads_share_a_function(void)
{
    CUfunction shape = get_kernel(module, "shape");
    pthread_t threads[THREADS];

    MUST(cuMemsetD32_v2(out, 0, 2));
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuFuncSetBlockShape(shape, 1, 1, 1));
    for (int i = 0; i < THREADS; i++)
        IS_TRUE(pthread_create(&threads[i], NULL, set_and_launch, shape) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    IS_TRUE(word_at(out) == THREADS * 50);
}

static void refuses_what_no_launch_has(void)
{
    CUfunction shape = get_kernel(module, "shape");

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(shape, 0, 1, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(shape, 1, -1, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(shape, 1u << 30));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSeti(shape, -4, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(shape, 8, &out, 0xfffffff8));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(shape, 0, 1));
}

static void counts_references(void)
{
    CUcontext created, attached = NULL, before;

    MUST(cuCtxGetCurrent(&before));
    MUST(cuCtxCreate_v2(&created, 0, device));
    EXPECT(CUDA_SUCCESS, cuCtxAttach(&attached, 0));
    IS_TRUE(attached == created);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&attached, 1));
    EXPECT(CUDA_SUCCESS, cuCtxDetach(created));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuCtxDetach(created));
    MUST(cuCtxGetCurrent(&attached));
    IS_TRUE(attached == before);
}

static void attaches_to_the_primary_context(void)
{
    CUcontext current, attached = NULL;

    MUST(cuCtxGetCurrent(&current));
    EXPECT(CUDA_SUCCESS, cuCtxAttach(&attached, 0));
    IS_TRUE(attached == current);
    EXPECT(CUDA_SUCCESS, cuCtxDetach(attached));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

/* A context of 64 bits is none for calls that know addresses of 32 bits. */
static void refuses_short_addresses(void)
{
    CUdeviceptr_v1 address = 0;
    unsigned bytes = 0;
    size_t all;

    MUST(cuDeviceTotalMem_v2(&all, device));
    EXPECT(CUDA_SUCCESS, cuDeviceTotalMem(&bytes, device));
    IS_TRUE(bytes == (all < UINT32_MAX ? all : UINT32_MAX));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&address, 4096));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo(&bytes, &bytes));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD32(address, 0, 4));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemFree(address));
}

int main(void)
{
    device = check_open();
    module = load_kernels();
    out = make_words(64, 0);
    RUN(launches_what_was_set);
    RUN(takes_numbers);
    RUN(has_shared_memory);
    RUN(threads_share_a_function);
    RUN(refuses_what_no_launch_has);
    RUN(counts_references);
    RUN(attaches_to_the_primary_context);
    RUN(refuses_short_addresses);
    return check_close();
}
