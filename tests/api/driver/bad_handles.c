/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are gone, or never were. Funnel and the software GPU answer each with an error;
 * NVIDIA's driver may crash, so this program is not run on it directly.
 */
#include "check.h"

static CUmodule module;

static void destroyed(void)
{
    CUstream stream;
    CUevent event;

    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuEventDestroy_v2(event));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, NULL));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event));
}

static void invented(void)
{
    CUstream stream = (CUstream)0x123456789abcdef0;
    CUevent event = (CUevent)(uintptr_t)-1;
    CUfunction function;

    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    EXPECT(CUDA_ERROR_INVALID_HANDLE,
           cuModuleGetFunction(&function, (CUmodule)0xdeadbeef0000, "fill"));
    EXPECT(CUDA_ERROR_INVALID_HANDLE,
           cuLaunchKernel((CUfunction)0xdeadbeef0000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* A handle of one kind is not taken for one of another. */
static void of_another_kind(void)
{
    CUstream stream;
    CUevent event;

    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)event));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery((CUevent)stream));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuEventDestroy_v2(event));
}

static void an_unloaded_module(void)
{
    CUmodule gone = load_kernels();
    CUfunction function;

    MUST(cuModuleUnload(gone));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, gone, "fill"));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(gone));
    get_kernel(module, "fill");
}

int main(void)
{
    check_open();
    module = load_kernels();
    RUN(destroyed);
    RUN(invented);
    RUN(of_another_kind);
    RUN(an_unloaded_module);
    return check_close();
}
