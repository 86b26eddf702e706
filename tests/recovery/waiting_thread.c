/* SPDX-License-Identifier: Apache-2.0 */
/* See waiting_thread.h. */
#include "waiting_thread.h"

#include <pthread.h>
#include <stdint.h>

#include "cuda_prototypes.h"

static struct {
    pthread_t thread;
    CUcontext context;
    CUstream stream;
} waiting;

static void *wait_for_stream(void *unused)
{
    CUresult result = cuCtxSetCurrent(waiting.context);

    return (void *)(uintptr_t)(result ? result : cuStreamSynchronize(waiting.stream));
}

CUresult waiting_thread_begin(CUcontext context, CUstream stream)
{
    waiting.context = context;
    waiting.stream = stream;
    return pthread_create(&waiting.thread, NULL, wait_for_stream, NULL) ? CUDA_ERROR_OUT_OF_MEMORY
                                                                        : CUDA_SUCCESS;
}

CUresult waiting_thread_join(void)
{
    void *result;

    pthread_join(waiting.thread, &result);
    return (CUresult)(uintptr_t)result;
}
