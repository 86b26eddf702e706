/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of current contexts, and the life of primary and of created contexts.
 */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

static CUdevice device;

static CUcontext current(void)
{
    CUcontext context = NULL;

    MUST(cuCtxGetCurrent(&context));
    return context;
}

static bool is_active(void)
{
    unsigned flags;
    int active = -1;

    MUST(cuDevicePrimaryCtxGetState(device, &flags, &active));
    return active == 1;
}

static void nothing_is_current(void)
{
    CUdevice unused;
    CUdeviceptr pointer;
    CUcontext context;

    IS_TRUE(current() == NULL);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&unused));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&pointer, 16));
    EXPECT(CUDA_SUCCESS, cuMemFree_v2(0));
    EXPECT(CUDA_SUCCESS, cuMemFreeHost(NULL));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&context));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent_v2(NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(NULL));
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(NULL));
}

static void retain_and_release(void)
{
    CUcontext first, second;

    IS_TRUE(!is_active());
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&first, device));
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&second, device));
    IS_TRUE(first == second);
    IS_TRUE(is_active());
    IS_TRUE(current() == NULL);
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(device));
    IS_TRUE(is_active());
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(device));
    IS_TRUE(!is_active());
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(device));
}

static void flags_of_the_primary(void)
{
    unsigned flags = 99;
    int active;

    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxSetFlags_v2(device, CU_CTX_SCHED_BLOCKING_SYNC));
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(device, &flags, &active));
    IS_TRUE(flags == CU_CTX_SCHED_BLOCKING_SYNC && active == 0);
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxSetFlags_v2(device, 0));
}

static void the_stack(void)
{
    CUcontext primary, created, popped;
    CUdevice where = -1;

    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    EXPECT(CUDA_SUCCESS, cuCtxPushCurrent_v2(primary));
    IS_TRUE(current() == primary);
    EXPECT(CUDA_SUCCESS, cuCtxGetDevice(&where));
    IS_TRUE(where == device);

    EXPECT(CUDA_SUCCESS, cuCtxCreate_v2(&created, 0, device));
    IS_TRUE(created != primary && current() == created);
    EXPECT(CUDA_SUCCESS, cuCtxPushCurrent_v2(primary));
    EXPECT(CUDA_SUCCESS, cuCtxPushCurrent_v2(primary));
    EXPECT(CUDA_SUCCESS, cuCtxPopCurrent_v2(&popped));
    IS_TRUE(popped == primary && current() == primary);
    EXPECT(CUDA_SUCCESS, cuCtxPopCurrent_v2(NULL));
    IS_TRUE(current() == created);
    /* The current context is the top of the stack, and setting it replaces the top. */
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(primary));
    EXPECT(CUDA_SUCCESS, cuCtxPopCurrent_v2(&popped));
    IS_TRUE(popped == primary && current() == primary);
    EXPECT(CUDA_SUCCESS, cuCtxSetCurrent(created));
    EXPECT(CUDA_SUCCESS, cuCtxDestroy_v2(created));
    IS_TRUE(current() == NULL);
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&popped));
    MUST(cuDevicePrimaryCtxRelease_v2(device));
}

static void what_a_context_knows(void)
{
    CUcontext primary;
    unsigned version = 0;
    unsigned long long id = 0, other_id = 0;
    size_t stack = 0;
    int least = -1, greatest = 1;

    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    EXPECT(CUDA_SUCCESS, cuCtxGetApiVersion(primary, &version));
    IS_TRUE(version >= 3020);
    EXPECT(CUDA_SUCCESS, cuCtxGetId(primary, &id));
    EXPECT(CUDA_SUCCESS, cuCtxGetId(NULL, &other_id));
    IS_TRUE(id == other_id);
    EXPECT(CUDA_SUCCESS, cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
    IS_TRUE(stack > 0);
    EXPECT(CUDA_SUCCESS, cuCtxGetStreamPriorityRange(&least, &greatest));
    IS_TRUE(least == 0 && greatest <= 0);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease_v2(device));
}

/* Memory of a context belongs to it, but its addresses mean the same in every context. */
static void memory_of_contexts(void)
{
    CUcontext first, second;
    CUdeviceptr a, b;

    MUST(cuCtxCreate_v2(&first, 0, device));
    a = make_words(1000, 7);
    MUST(cuCtxCreate_v2(&second, 0, device));
    b = make_words(1000, 9);
    EXPECT(CUDA_SUCCESS, cuMemcpyDtoD_v2(b, a, 400));
    IS_TRUE(words_are(b, 100, 7) && words_are(b + 400, 900, 9));
    EXPECT(CUDA_SUCCESS, cuCtxDestroy_v2(second));
    IS_TRUE(current() == first);
    IS_TRUE(words_are(a, 1000, 7));
    EXPECT(CUDA_SUCCESS, cuCtxDestroy_v2(first));
}

static void reset(void)
{
    CUcontext before, after;
    CUdeviceptr words;
    unsigned version;

    MUST(cuDevicePrimaryCtxRetain(&before, device));
    MUST(cuCtxSetCurrent(before));
    make_words(1000, 7);
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(device));
    IS_TRUE(!is_active());
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(before, &version));
    EXPECT(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&after, device));
    IS_TRUE(before == after);
    MUST(cuCtxSetCurrent(after));
    words = make_words(1000, 8);
    IS_TRUE(words_are(words, 1000, 8));
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease_v2(device));
}

static void *current_in_thread(void *result)
{
    *(CUcontext *)result = current();
    return NULL;
}

static void threads_have_stacks_of_their_own(void)
{
    CUcontext primary, seen = (CUcontext)1;
    pthread_t thread;

    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    IS_TRUE(pthread_create(&thread, NULL, current_in_thread, &seen) == 0);
    pthread_join(thread, NULL);
    IS_TRUE(seen == NULL);
    IS_TRUE(current() == primary);
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease_v2(device));
}

int main(void)
{
    device = check_init();
    RUN(nothing_is_current);
    RUN(retain_and_release);
    RUN(flags_of_the_primary);
    RUN(the_stack);
    RUN(what_a_context_knows);
    RUN(memory_of_contexts);
    RUN(reset);
    RUN(threads_have_stacks_of_their_own);
    return check_close();
}
