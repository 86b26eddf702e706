/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that does what it may not. The error is the program's own, and stays: every later call
 * that needs the context reports it. The argument says which fault.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

static CUmodule module;
static CUdeviceptr word;

static void queue_fault(const char *kind)
{
    CUdeviceptr address = strcmp(kind, "misaligned") == 0 ? word + 1 : 0x10;
    uint32_t value = 1;
    void *parameters[] = {&address, &value};

    if (strcmp(kind, "trap") == 0)
        launch_one(get_kernel(module, "trap"), NULL, NULL);
    else
        launch_one(get_kernel(module, "store"), NULL, parameters);
}

static CUresult expected_of(const char *kind)
{
    if (strcmp(kind, "misaligned") == 0)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    if (strcmp(kind, "trap") == 0)
        return CUDA_ERROR_LAUNCH_FAILED;
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "null";
    CUresult expected = expected_of(kind);
    CUdeviceptr pointer;
    uint32_t value;
    int version = 0;

    check_open();
    module = load_kernels();
    word = make_words(4, 7);
    queue_fault(kind);
    EXPECT(expected, cuCtxSynchronize());
    EXPECT(expected, cuCtxSynchronize());
    EXPECT(expected, cuMemAlloc_v2(&pointer, 16));
    EXPECT(expected, cuMemcpyDtoH_v2(&value, word, sizeof(value)));
    EXPECT(expected, cuStreamSynchronize(NULL));
    /* What needs no context goes on. */
    EXPECT(CUDA_SUCCESS, cuDriverGetVersion(&version));
    puts("the error stays");
    check_close();
    return 0;
}
