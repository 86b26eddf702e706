/* SPDX-License-Identifier: Apache-2.0 */
/* The lock and the handles of the driver, and what stream 0 means in each thread. */
#include "soft.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;
struct handles soft_handles;

static __thread CUstream default_stream = CU_STREAM_LEGACY;

CUstream soft_default_stream_swap(CUstream stream)
{
    CUstream before = default_stream;

    default_stream = stream;
    return before;
}

CUstream soft_default_stream(void)
{
    return default_stream;
}
