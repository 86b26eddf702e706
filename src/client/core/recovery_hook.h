/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread may wait, and where it enters the library, it asks whether the server is still
 * there. If it is not, src/client/recovery may move the client to another one at this place.
 */
#pragma once

#include "client.h"

/* Set once while attaching; see recovery_error_slowly(). Without it a lost server stays lost. */
extern CUresult (*recovery_hook)(void);

/* What is wrong with the server, after another one was tried where that is possible: CUDA_SUCCESS
 * when nothing is, or not any more. For places where a thread may wait: it changes nothing that
 * other threads inside might need, and the caller reads everything anew afterwards. */
CUresult recovery_error_slowly(void);

/* The same, and one load while the server is well. */
static inline CUresult recovery_error(void)
{
    return channel_error(&client->channel) == CUDA_SUCCESS ? CUDA_SUCCESS : recovery_error_slowly();
}
