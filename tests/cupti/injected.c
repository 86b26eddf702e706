/* SPDX-License-Identifier: Apache-2.0 */
/* A library that CUDA_INJECTION64_PATH names: it counts the kernels of a program that knows nothing
 * of it, and prints their number when the program ends. */
#include <cupti.h>

#include "collect.h"

int InitializeInjection(void);

static void print_kernels(void)
{
    MUST(cuptiActivityFlushAll(0));
    printf("%u kernels were seen\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    MUST(cuptiActivityRegisterCallbacks(request, complete));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    atexit(print_kernels);
    printf("the library is there\n");
    return 1;
}
